package docs

import (
	"html"
	"regexp"
	"strings"
	"testing"

	manual "github.com/service-dev/service/docs"
)

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

func FuzzMarkdown(f *testing.F) {
	for _, p := range manual.Pages() {
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
