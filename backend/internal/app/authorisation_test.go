package app

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/test/enginetest"
)

var update = flag.Bool("update", false, "rewrite testdata/authorisation.md")

const authTable = "testdata/authorisation.md"

// The test requests every page route as every kind of visitor, on both database engines. Only the owner may access the
// owner's resources.
func TestAuthorisation_EveryRouteForEverybody(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		table := newAuthWorld(t, filepath.Join(t.TempDir(), "service.db")).walk()
		if *update {
			if err := os.WriteFile(authTable, []byte(table), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		compareTable(t, table)
	})
	t.Run("postgres", func(t *testing.T) {
		if *update {
			t.Skip("-update writes the table in the SQLite test")
		}
		t.Parallel()
		compareTable(t, newAuthWorld(t, enginetest.Postgres(t).Database(t)).walk())
	})
}

func compareTable(t *testing.T, table string) {
	t.Helper()
	want, err := os.ReadFile(authTable)
	if err != nil {
		t.Fatal(err)
	}
	is, was := strings.Split(table, "\n"), strings.Split(string(want), "\n")
	for _, line := range is {
		if !slices.Contains(was, line) {
			t.Errorf("a line is not in %s; if the change is intended, run with -update:\n%s", authTable, line)
		}
	}
	if len(is) != len(was) {
		t.Errorf("got %d lines, want as many as %s has, %d", len(is), authTable, len(was))
	}
}

const tableHead = `# Who may use which page

Written by TestAuthorisation_EveryRouteForEverybody with -update. Each cell is the answer's status, where it leads, and the tables in
which it changed something. Names in braces are the owner's; {own} is a project that everybody has under that name. Each
POST has the token of its browser and comes from the site's own pages; without the token, with another browser's, or from
another origin, each of them is a 403 that changes nothing. The suspended account was signed in when it was suspended.

| Request | Visitor | Another account | Suspended account | Owner |
|---|---|---|---|---|
`

func (h *authWorld) walk() string {
	out := tableHead
	for _, v := range walk {
		if h.db.lite { // requests that do not use the database run on one engine only
			h.checkRefusals(v)
		}
		cells := []string{v.name()}
		for _, b := range append(slices.Clone(h.others), h.owner) {
			a := h.try(b, v, h.things)
			h.checkHeaders(b, v, a)
			if b == h.owner {
				h.checkOwner(v, a)
			} else {
				h.checkStranger(b, v, a)
			}
			cells = append(cells, a.cell())
		}
		out += "| " + strings.Join(cells, " | ") + " |\n"
	}
	return out
}

// name describes the request, including only the form fields that matter in this test.
func (v visit) name() string {
	name := v.method() + " `" + cmp.Or(v.path, v.address()) + "`"
	if strings.Contains(v.form, "{project}") || strings.Contains(v.form, "{own}") || v.pattern == "POST /signin" {
		name += " `" + v.form + "`"
	}
	if v.first != "" {
		name += " after `" + v.first + "`"
	}
	return name
}

// names reports whether the request's path or form contains a placeholder for one of the things.
func (v visit) names(things map[string]string) bool {
	for name := range things {
		if strings.Contains(v.pattern+v.path+v.form, "{"+name+"}") {
			return true
		}
	}
	return false
}

func (v visit) method() string {
	if method, _, ok := strings.Cut(v.pattern, " "); ok {
		return method
	}
	return http.MethodGet
}

func (v visit) address() string {
	_, path, _ := strings.Cut(v.pattern, " ")
	return path
}

// manner is the way in which a form is sent.
type manner int

const (
	asMeant manner = iota
	withoutToken
	withOthersToken
	fromElsewhere
)

// answer is the result of a request. text is the reproducible part of the response, with placeholders for the names of
// things. leads is the Location header in the same form.
type answer struct {
	status      int
	header      http.Header
	text, leads string
	changes     map[string][]string
}

func (a answer) cell() string {
	cell := fmt.Sprint(a.status)
	if a.leads != "" {
		cell += " → " + a.leads
	}
	if len(a.changes) > 0 {
		cell += " · " + tablesOf(a.changes)
	}
	return cell
}

var seenOf = regexp.MustCompile(`name="seen" value="([^"]+)"`)

// try sends the request from b, with things in place of the placeholders, and then undoes its changes to the database.
func (h *authWorld) try(b *browser, v visit, things map[string]string) answer {
	h.t.Helper()
	a := h.ask(b, v, things, asMeant)
	a.changes = h.db.changes()
	return a
}

func (h *authWorld) ask(b *browser, v visit, things map[string]string, how manner) answer {
	h.t.Helper()
	if v.method() == http.MethodGet && b.account == "" {
		b = &browser{name: b.name} // first visit of a browser
	}
	values := h.valuesOf(b, things)
	q := request{method: v.method(), path: fillIn(cmp.Or(v.path, v.address()), values), pattern: v.pattern,
		socket: v.socket}
	if q.method == http.MethodPost || v.socket {
		q.origin = map[bool]string{true: "https://elsewhere.example", false: siteURL}[how == fromElsewhere]
	}
	if q.method == http.MethodPost {
		h.fillForm(b, v, &q, values, how)
	}
	res, body := h.send(b, q)
	a := answer{status: res.StatusCode, header: res.Header}
	restore := func(text string) string {
		for _, name := range slices.Sorted(maps.Keys(h.missing)) {
			text = strings.ReplaceAll(text, things[name], "{"+name+"}")
		}
		return text
	}
	if a.leads = res.Header.Get("Location"); a.leads != "" {
		plain, err := url.QueryUnescape(a.leads)
		h.must(err)
		a.leads = restore(plain)
	}
	all := fmt.Sprintln(a.status)
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		// The cookie of a new visitor differs from request to request. So does the token, which is removed below.
		if name != "Set-Cookie" {
			all += name + ": " + strings.Join(a.header[name], ", ") + "\n"
		}
	}
	a.text = restore(csrfOf.ReplaceAllString(all+"\n"+body, ""))
	return a
}

// valuesOf returns the values of the placeholders in a visit. A mailed password-reset link is the owner's secret, so
// others have to guess it. Others may know the link that confirms an address, for example if the owner entered an
// address whose mail they can read.
func (h *authWorld) valuesOf(b *browser, things map[string]string) map[string]string {
	values := maps.Clone(h.things)
	maps.Copy(values, things)
	values["own"], values["email"] = "com.example.own", b.email
	if b != h.owner {
		values["reset"] = h.missing["reset"]
	}
	return values
}

func (h *authWorld) fillForm(b *browser, v visit, q *request, values map[string]string, how manner) {
	h.t.Helper()
	var err error
	q.form, err = url.ParseQuery(fillIn(v.form, values))
	h.must(err)
	if v.first != "" {
		res, body := h.send(b, request{method: http.MethodGet, path: fillIn(v.first, values)})
		for _, c := range res.Cookies() {
			if !strings.HasSuffix(c.Name, "service-test") { // a short-lived cookie
				q.cookies = append(q.cookies, c)
			}
		}
		if m := seenOf.FindStringSubmatch(body); m != nil {
			q.form.Set("seen", m[1])
		}
	}
	q.form.Set("csrf", b.csrf)
	switch how {
	case withoutToken:
		q.form.Del("csrf")
	case withOthersToken:
		q.form.Set("csrf", h.others[1].csrf)
		if b == h.others[1] {
			q.form.Set("csrf", h.owner.csrf)
		}
	case asMeant, fromElsewhere:
	}
}

func fillIn(text string, values map[string]string) string {
	for name, value := range values {
		text = strings.ReplaceAll(text, "{"+name+"}", url.QueryEscape(value))
	}
	return text
}
