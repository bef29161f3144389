package web

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
)

// TestDocs_AreCompleteAndPublic requests every page as an unknown visitor. The pages exist, their links work, and
// caches may store them.
func TestDocs_AreCompleteAndPublic(t *testing.T) {
	site := newSite(t, newFake())
	v := visit(t, site)
	ids := map[string]bool{"/docs": true, "/": true, "/privacy": true, "/llms.txt": true}
	for _, p := range docs.Pages() {
		ids["/docs/"+p.ID], ids["/docs/"+p.ID+".md"] = true, true
		for _, s := range p.Sections {
			ids["/docs/"+s.ID] = true
		}
	}
	links := regexp.MustCompile(`href="([^"]*)"`)
	for _, p := range docs.Pages() {
		path := "/docs/" + p.ID
		v.get(path).want(http.StatusOK, "<h1>"+p.Title+"</h1>")
		if got := v.header.Get("Cache-Control"); !strings.HasPrefix(got, "public") {
			t.Errorf("%s: Cache-Control is %q, want public", path, got)
		}
		if v.header.Get("Set-Cookie") != "" {
			t.Errorf("%s sets a cookie", path)
		}
		for _, link := range links.FindAllStringSubmatch(v.page, -1) {
			to := link[1]
			if strings.HasPrefix(to, "#") {
				if to != "#main" && !strings.Contains(v.page, ` id="`+to[1:]+`"`) {
					t.Errorf("%s: the target of %s does not exist", path, to)
				}
			} else if !ids[to] && !strings.HasPrefix(to, "/assets/") {
				t.Errorf("%s: the target of %s does not exist", path, to)
			}
		}
		v.get(path+".md").want(http.StatusOK, "# "+p.Title)
		if got := v.header.Get("Content-Type"); got != "text/markdown; charset=utf-8" {
			t.Errorf("%s.md has the content type %s, want Markdown", path, got)
		}
	}
	v.get("/docs").want(http.StatusOK, "Getting started")
	v.get("/llms.txt").want(http.StatusOK, "(/docs/display.md): ")
	v.get("/docs/llms.txt").want(http.StatusOK, "# The service")
	v.get("/docs/nosuch").want(http.StatusNotFound, "does not exist")
	v.get("/docs/").want(http.StatusMovedPermanently)
}

func TestDocs_NotModified(t *testing.T) {
	site := newSite(t, newFake())
	v := visit(t, site).get("/docs/display")
	tag := v.header.Get("ETag")
	req, err := http.NewRequest(http.MethodGet, site.URL+"/docs/display", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("If-None-Match", tag)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNotModified || tag == "" {
		t.Errorf("ETag %q: got %s, want 304", tag, res.Status)
	}
}

func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"# Title\n\na <b> & `c<d`", "<p>a &lt;b&gt; &amp; <code>c&lt;d</code></p>\n"},
		{"## Two words\ntext", "<h2 id=\"two-words\"><a class=\"anchor\" href=\"#two-words\">Two words</a></h2>\n" +
			"<p>text</p>\n"},
		{"- a\n  b\n- **c**\n\nd", "<ul>\n<li>a\nb</li>\n<li><strong>c</strong></li>\n</ul>\n<p>d</p>\n"},
		{"1. a\n2. b", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>\n"},
		{"1. a\n\n   ```sh\n   x\n     y\n   ```\n\n   b\n2. c\n\nd",
			"<ol>\n<li><p>a</p>\n<pre tabindex=\"0\" data-language=\"sh\">" +
				"<code>x\n  y</code></pre>\n<p>b</p>\n</li>\n<li>c</li>\n</ol>\n<p>d</p>\n"},
		{"1. a\n\n```sh\nx\n```\n\n2. b\n\n3. c",
			"<ol>\n<li>a</li>\n</ol>\n<pre tabindex=\"0\" data-language=\"sh\"><code>x</code></pre>\n" +
				"<ol start=\"2\">\n<li>b</li>\n<li>c</li>\n</ol>\n"},
		{"```json app\n<x>\n# no\n```", "<pre tabindex=\"0\" data-language=\"json\"><code>&lt;x&gt;\n# no</code></pre>\n"},
		{"| a | b |\n|---|---|\n| `x\\|y` | |",
			"<div class=\"table\" tabindex=\"0\"><table>\n<thead><tr><th scope=\"col\">a</th><th scope=\"col\">b</th></tr></thead>\n<tbody>\n" +
				"<tr><td><code>x|y</code></td><td></td></tr>\n</tbody></table></div>\n"},
		{"[a `b`](display#lists) [c](#d) [e](https://f.example/?a=1&b=2)",
			`<p><a href="/docs/display#lists">a <code>b</code></a> <a href="#d">c</a> <a href="https://f.example/?a=1&amp;b=2">e</a></p>` + "\n"},
		{"[a](javascript:alert) <script>", "<p>a &lt;script&gt;</p>\n"},
	} {
		if got, _ := markdown(c.text); string(got) != c.want {
			t.Errorf("markdown(%q)\ngot  %q\nwant %q", c.text, got, c.want)
		}
	}
}

func TestHighlight_ColoursWords(t *testing.T) {
	span := regexp.MustCompile(`<span class="(.)">([^<]*)</span>`)
	for _, c := range []struct{ language, code, want string }{
		{"json", `{"a": "b", "n": -1.5, "t": true}`, `{<p>"a"</p>: <s>"b"</s>, ` +
			`<p>"n"</p>: <n>-1.5</n>, <p>"t"</p>: <k>true</k>}`},
		{"json", `{"a":1,"b":",:"}`, `{<p>"a"</p>:<wbr><n>1</n>,<wbr><p>"b"</p>:<wbr><s>",:"</s>}`},
		{"sh", "a --all 'x' $HOME # why\nb#c", "a <k>--all</k> <s>'x'</s> <p>$HOME</p> <c># why</c>\nb#c"},
		{"ts", "const a = \"if\"; // if", "<k>const</k> a = <s>\"if\"</s>; <c>// if</c>"},
		{"py", "if a: # b", "<k>if</k> a: <c># b</c>"},
		{"yaml", "- id: x # y", "- <p>id</p>: x <c># y</c>"},
		{"", "if <a>", "if &lt;a&gt;"},
	} {
		got := span.ReplaceAllString(highlight(c.language, c.code), "<$1>$2</$1>")
		if got = strings.NewReplacer("&#34;", `"`, "&#39;", "'").Replace(got); got != c.want {
			t.Errorf("%s: highlight(%q)\ngot  %q\nwant %q", c.language, c.code, got, c.want)
		}
	}
}

func FuzzHighlight(f *testing.F) {
	for language := range grammars {
		f.Add(language, `"a" 'b' # // /* -x $y true 1`)
	}
	f.Fuzz(func(t *testing.T, language, code string) {
		out := highlight(language, code)
		bare := regexp.MustCompile(`<span class="[cskpn]">|</span>|<wbr>`).ReplaceAllString(out, "")
		if bare != html.EscapeString(code) {
			t.Fatalf("%s: highlight(%q) changed the code to %q", language, code, bare)
		}
	})
}

// TestDocs_Search searches like a browser without scripts.
func TestDocs_Search(t *testing.T) {
	v := visit(t, newSite(t, newFake()))
	v.get("/docs/search?q=how+do+I+scroll+a+list").want(http.StatusOK, `<a href="/docs/`, "<mark>list</mark>")
	v.get("/docs/search?q="+url.QueryEscape(`<qqq>"x`)).want(http.StatusOK, "Nothing was found", "&lt;qqq&gt;")
	v.get("/docs/search?q=display").want(http.StatusOK, `value="display"`)
	v.get("/docs/search?q=%FF+" + strings.Repeat("a+", 5000)).want(http.StatusOK)
	v.get("/docs/search?q=+").want(http.StatusSeeOther)
	v.get("/docs/display").want(http.StatusOK, `action="/docs/search"`, `rel="prev"`, `rel="next"`)
}

func FuzzMarkdown(f *testing.F) {
	for _, p := range docs.Pages() {
		f.Add(p.Markdown)
	}
	f.Add("| a\n|-|\n[x](javascript:y)\n```")
	tag := regexp.MustCompile(`<[^>]*>`)
	allowed := regexp.MustCompile(`^</?(h[2-4]( id="[a-z0-9-]*")?|p|ul|ol( start="[0-9]+")?|li|strong|code` +
		`|pre( tabindex="0" data-language="[^"<]*")?|div( class="(table" tabindex="0|shown( sheet)?)")?` +
		`|img src="/docs/panels/[0-9a-f]{12}.png" width="[0-9]+" height="[0-9]+"` +
		` loading="lazy" alt="This tree on [A-Za-z -]+"` +
		`|table|thead|tbody|tr|th( scope="col")?|td` +
		`|a( class="anchor")?( href="(#|/docs/|https://)[^"<]*")?|span( class="[cskpn]")?|wbr)>$`)
	f.Fuzz(func(t *testing.T, text string) {
		out, _ := markdown(text)
		for _, each := range tag.FindAllString(string(out), -1) {
			if !allowed.MatchString(each) {
				t.Fatalf("markdown(%q) returned %q, which contains the forbidden %q", text, out, each)
			}
		}
	})
}
