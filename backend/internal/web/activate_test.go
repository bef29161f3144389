package web

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/link"
)

const (
	code = "WDJB-MJHT"
	page = "/activate?code=" + code
)

func TestActivation_SignUpAndApprove(t *testing.T) {
	f := newPeople(t, code)
	v := visit(t, newSite(t, f)).get(page).want(http.StatusOK, code, "Create account", "Deny")
	v.signUp("ada@example.com", page).want(http.StatusOK, code, "Approve", "Deny", "ada@example.com", "Not you?")
	v.post("/activate/approve?code="+code, v.tokens()).want(http.StatusSeeOther)
	v.get(v.header.Get("Location")).want(http.StatusOK, "Return to your agent")
	if f.approver(code) != "ada@example.com" {
		t.Errorf("approved by %q, want ada", f.approver(code))
	}
	v.get(page).want(http.StatusNotFound, "you are done: return to your agent")
}

func TestActivation_DenyWithoutAccount(t *testing.T) {
	f := newPeople(t, code)
	v := visit(t, newSite(t, f)).get(page)
	v.post("/activate/deny?code="+code, v.tokens()).want(http.StatusSeeOther)
	v.get(v.header.Get("Location")).want(http.StatusOK, "Denied")
	if f.code(code).State != link.Denied {
		t.Error("the code was not denied")
	}
}

// A browser that has not opened the page of a code can neither approve nor deny it, even if it is signed in and has
// its own tokens.
func TestActivation_OtherBrowserCannotDecide(t *testing.T) {
	f := newPeople(t, code, "BBBB-CCCC")
	site := newSite(t, f)
	a := visit(t, site).get(page).signUp("a@example.com", page)
	seenByA := a.tokens().Get("seen")

	b := visit(t, site).get("/activate?code=BBBB-CCCC").signUp("b@example.com", "/activate?code=BBBB-CCCC")
	own := b.tokens()
	for name, seen := range map[string]string{"none": "", "of another code": own.Get("seen"),
		"of another browser": seenByA} {
		form := url.Values{"csrf": {own.Get("csrf")}, "seen": {seen}}
		for _, act := range []string{"approve", "deny"} {
			if b.post("/activate/"+act+"?code="+code, form); b.status != http.StatusForbidden {
				t.Errorf("%s with proof %s: got status %d, want 403", act, name, b.status)
			}
		}
	}
	if f.count("device_codes WHERE state <> 'pending'") != 0 {
		t.Fatal("a refused request approved or denied the code")
	}
	a.post("/activate/approve?code="+code, a.tokens()).want(http.StatusSeeOther)
	if f.approver(code) != "a@example.com" {
		t.Error("the approval by browser A had no effect")
	}
}

// The right cookie and the right code are not enough for a cross-site POST.
func TestCrossSitePost_ChangesNothing(t *testing.T) {
	f := newPeople(t, code)
	site := newSite(t, f)
	v := visit(t, site).get(page)
	beforeLogin := v.tokens()
	v.signUp("a@example.com", page)
	good, before := v.tokens(), f.written()
	foreign := visit(t, site).get(page).tokens()
	without := url.Values{"seen": good["seen"]}
	mixed := url.Values{"seen": good["seen"], "csrf": foreign["csrf"]}

	for _, tc := range []struct {
		name   string
		form   url.Values
		header []string
	}{
		{"no token", without, nil},
		{"foreign token", mixed, nil},
		{"token from before the login", beforeLogin, nil},
		{"foreign origin", good, []string{"Origin", "https://evil.example"}},
		{"null origin", good, []string{"Origin", "null"}},
		{"cross-site fetch", good, []string{"Sec-Fetch-Site", "cross-site"}},
		{"same-site fetch", good, []string{"Sec-Fetch-Site", "same-site"}},
	} {
		for _, path := range []string{"/activate/approve?code=" + code, "/activate/deny?code=" + code, "/signout", "/signin",
			"/signup"} {
			if v.post(path, tc.form, tc.header...); v.status != http.StatusForbidden {
				t.Errorf("%s: POST %s: got status %d, want 403", tc.name, path, v.status)
			}
		}
	}
	if got := f.written(); got != before {
		t.Errorf("refused requests changed the counts of rows from %s to %s", before, got)
	}
	v.get(page).want(http.StatusOK, "Approve")
}

func TestGet_ChangesNothing(t *testing.T) {
	f := newPeople(t, code)
	site := newSite(t, f)
	v := visit(t, site).get(page).signUp("a@example.com", page)
	query := "?code=" + code + "&" + v.tokens().Encode()
	before := f.written()
	for _, path := range []string{
		"/", page, "/activate", "/signin", "/signup", "/signout", "/privacy", "/activate/approve" + query,
		"/activate/deny" + query, "/activate/approved", "/activate/denied", "/nowhere",
	} {
		for _, who := range []*visitor{v, visit(t, site)} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				req, _ := http.NewRequest(method, site.URL+path, nil)
				who.do(req)
			}
		}
	}
	if got := f.written(); got != before {
		t.Errorf("GET and HEAD requests changed the counts of rows from %s to %s", before, got)
	}
	v.get(page).want(http.StatusOK, "Approve")
}

// The page names the requester, shows the code as text but never in an input, and has visible buttons for both
// decisions.
func TestActivation_ShowsTheRequester(t *testing.T) {
	site := newSite(t, newPeople(t, code))
	v := visit(t, site)
	for _, signedIn := range []bool{false, true} {
		if signedIn {
			v.signUp("a@example.com", page)
		}
		v.get(page).want(http.StatusOK, ">"+code+"<", "maple", "Debian 12", "claude-code 2.1", "192.0.2.7", "2 minutes ago",
			"Deny")
		for _, input := range regexp.MustCompile(`(?s)<(input|textarea|select)[^>]*>`).FindAllString(v.page, -1) {
			if strings.Contains(strings.ToUpper(input), code) || strings.Contains(input, `name="code"`) {
				t.Errorf("an input contains the code: %s", input)
			}
		}
		if strings.Contains(v.page, "<script") || strings.Contains(v.page, "style=") {
			t.Error("the page contains a script or an inline style")
		}
		if m := regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//[^"]*"`).FindString(v.page); m != "" {
			t.Errorf("the page links to another site: %s", m)
		}
	}
}

// The page notes that the request came from this browser's address, unless the address belongs to a proxy, whose
// clients all share it.
func TestActivation_ComparesOnlyKnownAddresses(t *testing.T) {
	for name, tc := range map[string]struct {
		address string
		known   func(*http.Request) bool
		note    string
	}{
		"its own":        {"192.0.2.7", func(*http.Request) bool { return true }, "(same as this browser)"},
		"a proxy's":      {"192.0.2.7", func(*http.Request) bool { return false }, "(maybe a proxy&#39;s)"},
		"nobody tells":   {"192.0.2.7", nil, "(maybe a proxy&#39;s)"},
		"another's, own": {"192.0.2.8", func(*http.Request) bool { return true }, ""},
	} {
		v := visit(t, newSite(t, newPeople(t, code), func(o *Options) {
			o.ClientIP, o.AddressKnown = func(*http.Request) string { return tc.address }, tc.known
		})).get(page).want(http.StatusOK, "192.0.2.7")
		for _, note := range []string{"same as this browser", "maybe a proxy"} {
			if said := strings.Contains(v.page, note); said != strings.Contains(tc.note, note) {
				t.Errorf("%s: note %q is shown: %t, want the opposite", name, note, said)
			}
		}
	}
}

func TestActivation_DoesNotEchoScript(t *testing.T) {
	f := newPeople(t, code)
	f.exec("UPDATE device_codes SET host = $1, client = $2", `<script>alert(1)</script>`, "nice\u202eevil\x1b[31m\n")
	v := visit(t, newSite(t, f))
	v.get("/activate?code="+url.QueryEscape(`"><script>alert(1)</script>`)).want(http.StatusBadRequest,
		`value="&#34;&gt;&lt;script&gt;alert`)
	if strings.Contains(v.page, "<script>") {
		t.Error("the typed code was not escaped")
	}
	v.get(page).want(http.StatusOK, "&lt;script&gt;alert(1)", "niceevil[31m")
	if strings.Contains(v.page, "<script") || strings.ContainsAny(v.page, "\u202e\x1b") {
		t.Error("the requester's text was not escaped")
	}
}

func TestActivation_InvalidCodesLookTheSame(t *testing.T) {
	site := newSite(t, newPeople(t, code))
	v, other := visit(t, site), visit(t, site)
	v.get(page)
	v.post("/activate/deny?code="+code, v.tokens()).want(http.StatusSeeOther)
	used := other.get(page).want(http.StatusNotFound, "is not pending").page
	for _, other := range []string{"BBBB-BBBB", "bbbbcccc", "LLLL+LLLL"} {
		if v.get("/activate?code=" + other); v.page != used || v.status != http.StatusNotFound {
			t.Errorf("code %q: got a different page or status %d", other, v.status)
		}
	}
}

// A browser session that saw a pending code sees the outcome of that code, but of no other.
func TestActivation_SaysWhatBecameOfACodeThatWasShown(t *testing.T) {
	f := newPeople(t, "BBBB-CCCC", "CCCC-DDDD", "DDDD-FFFF")
	site := newSite(t, f)
	a, b := visit(t, site), visit(t, site)
	open := func(v *visitor, code string) *visitor { return v.get("/activate?code=" + code) }
	open(a, "BBBB-CCCC").want(http.StatusOK)
	open(b, "BBBB-CCCC").want(http.StatusOK)
	a.post("/activate/deny?code=BBBB-CCCC", a.tokens()).want(http.StatusSeeOther)
	open(a, "BBBB-CCCC").want(http.StatusNotFound, "This code was denied")
	open(b, "BBBB-CCCC").want(http.StatusNotFound, "This code was denied")
	open(b, "CCCC-DDDD").want(http.StatusOK)
	open(b, "BBBB-CCCC").want(http.StatusNotFound, "This code was denied") // an earlier code is remembered too
	f.setState("CCCC-DDDD", link.Approved)
	open(b, "CCCC-DDDD").want(http.StatusNotFound, "already used")
	open(a, "CCCC-DDDD").want(http.StatusNotFound, "is not pending")
	open(a, "DDDD-FFFF").want(http.StatusOK)
	f.expire("DDDD-FFFF")
	open(a, "DDDD-FFFF").want(http.StatusNotFound, "has expired")
	open(b, "DDDD-FFFF").want(http.StatusNotFound, "is not pending")
}

// A code may be valid for an hour. Afterwards the browser session that saw it learns that it has expired, until the
// code is deleted.
func TestActivation_RemembersACodeAsLongAsItMayBeValid(t *testing.T) {
	f := newPeople(t, code)
	v := visit(t, newSite(t, f)).get(page).want(http.StatusOK)
	f.expire(code)
	f.pass(61 * time.Minute)
	v.get(page).want(http.StatusNotFound, "This code has expired")
	f.pass(codeFlowLife)
	v.get(page).want(http.StatusNotFound, "This code is not pending")
}

// A session remembers the codes of several windows, but the list cannot grow without limit.
func TestActivation_RemembersSeveralCodes(t *testing.T) {
	var codes []string
	for _, letters := range "BCDFGHJKLM" {
		codes = append(codes, "WWWW-BBB"+string(letters))
	}
	f := newPeople(t, codes...)
	v := visit(t, newSite(t, f))
	for range 2 { // seeing a code again does not replace another one
		for _, one := range codes[len(codes)-maxShown:] {
			v.get("/activate?code=" + one).want(http.StatusOK)
		}
	}
	v.get("/activate?code=" + codes[0]).want(http.StatusOK)
	for _, one := range codes {
		f.expire(one)
	}
	v.get("/activate?code="+codes[0]).want(http.StatusNotFound, "has expired")
	v.get("/activate?code="+codes[len(codes)-1]).want(http.StatusNotFound, "has expired")
	v.get("/activate?code="+codes[len(codes)-maxShown]).want(http.StatusNotFound, "is not pending") // the oldest
}

// All others get the same answer, byte for byte, for every outcome of the code, even if they have no guesses left.
func TestActivation_OneAnswerForEverybodyElse(t *testing.T) {
	f := newPeople(t, "BBBB-CCCC", "CCCC-DDDD", "DDDD-FFFF", code)
	site := newSite(t, f)
	seer, other := visit(t, site), visit(t, site)
	for _, one := range []string{"BBBB-CCCC", "CCCC-DDDD", "DDDD-FFFF"} {
		seer.get("/activate?code=" + one).want(http.StatusOK)
	}
	f.setState("BBBB-CCCC", link.Denied)
	f.setState("CCCC-DDDD", link.Approved)
	f.expire("DDDD-FFFF")
	answers := map[string]string{}
	for _, one := range []string{"LLLL-LLLL", "BBBB-CCCC", "CCCC-DDDD", "DDDD-FFFF", "wdjb-llll"} {
		other.get("/activate?code=" + one).want(http.StatusNotFound)
		answers[other.page+other.header.Get("Retry-After")] += " " + one
	}
	for range wrongCodesPerMinute {
		other.get("/activate?code=LLLL-LLLL").want(http.StatusNotFound)
	}
	other.get(page).want(http.StatusNotFound) // throttled, although the code is correct
	answers[other.page+other.header.Get("Retry-After")] += " throttled"
	if len(answers) != 1 {
		t.Errorf("the answers differ for:%v", slices.Collect(maps.Values(answers)))
	}
}

// Ten wrong codes a minute are allowed. After that, even a correct code gets the response for a wrong one.
func TestActivation_GuessingIsThrottledWithTheSameAnswer(t *testing.T) {
	f := newPeople(t, code)
	address := "192.0.2.1"
	v := visit(t, newSite(t, f, func(o *Options) { o.ClientIP = func(*http.Request) string { return address } }))
	wrong := v.get("/activate?code=BBBB-BBBB").want(http.StatusNotFound).page
	for i := range wrongCodesPerMinute {
		if i == 4 {
			v.get(page).want(http.StatusOK) // a correct code in between does not reset the count
		}
		v.get("/activate?code=BBBB-BBBB").want(http.StatusNotFound)
	}
	if v.get(page); v.status != http.StatusNotFound || v.page != wrong {
		t.Errorf("the correct code after too many wrong ones: got status %d or a different page", v.status)
	}
	address = "192.0.2.2"
	v.get(page).want(http.StatusOK)
}

// A malformed code is corrected in the form. It counts as a wrong code, and its page never reveals whether codes are
// still looked up.
func TestActivation_MalformedCode(t *testing.T) {
	v := visit(t, newSite(t, newPeople(t, code)))
	for _, c := range []struct{ given, typed string }{
		{"ABCD", "ABCD"}, {"WDJB-MJH", "WDJB-MJH"}, {"WDJB-MJHTT", "WDJB-MJHTT"}, {"WDJB-MJHA", "WDJB-MJHA"},
		{"wdjb_mjht", "wdjb_mjht"}, {"\x00\u202ex", "x"}, {strings.Repeat("B", 300), strings.Repeat("B", 20)},
	} {
		v.get("/activate?code="+url.QueryEscape(c.given)).want(http.StatusBadRequest,
			"A code has eight letters, such as WDJB-MJHT",
			`name="code" value="`+c.typed+`"`, `aria-invalid="true"`, `id="code-error"`)
	}
	v.get(page).want(http.StatusOK)
	v.get("/activate?code=ABCD")
	before := v.page
	for range wrongCodesPerMinute {
		v.get("/activate?code=ABCD").want(http.StatusBadRequest)
	}
	if v.page != before || v.header.Get("Retry-After") != "" {
		t.Error("the page of a malformed code differs once codes are throttled")
	}
	v.get(page).want(http.StatusNotFound, "is not pending")
}

func TestActivation_WithoutCode(t *testing.T) {
	v := visit(t, newSite(t, newPeople(t, code))).get("/activate").want(http.StatusOK, "Open the link your agent shows",
		`<form class="fields" action="/activate">`, `name="code"`)
	v.get("/activate?code=wdjb-mjht+").want(http.StatusOK, ">"+code+"<")
	if strings.Contains(v.page, `name="code"`) {
		t.Error("the approval page has an input for a code")
	}
}

func TestActivation_AcceptsAnySpelling(t *testing.T) {
	v := visit(t, newSite(t, newPeople(t, code)))
	for _, form := range []string{"wdjbmjht", "wdjb+mjht", "WDJBMJHT", "wdjb-mjht", "Wdjb-MjHt", "+WDJB-MJHT+"} {
		v.get("/activate?code="+form).want(http.StatusOK, ">"+code+"<")
	}
}
