package app

import (
	"cmp"
	"errors"
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

	"github.com/service-dev/service/packaging/pgtest"
)

var update = flag.Bool("update", false, "write testdata/authorisation.md")

const authTable = "testdata/authorisation.md"

// Every route of the pages, asked for by everybody: what is the owner's is the owner's alone, on both engines.
func TestEveryRouteForEverybody(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		table := newAuthHouse(t, filepath.Join(t.TempDir(), "service.db")).walk()
		if *update {
			if err := os.WriteFile(authTable, []byte(table), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		compareTable(t, table)
	})
	t.Run("postgres", func(t *testing.T) {
		if *update {
			t.Skip("the table is written from SQLite")
		}
		t.Parallel()
		cluster, err := pgtest.Start()
		if errors.Is(err, pgtest.ErrMissing) {
			pgtest.Missing(t)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Stop)
		compareTable(t, newAuthHouse(t, cluster.Database(t)).walk())
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
			t.Errorf("not in %s (look whether it is meant, then run with -update):\n%s", authTable, line)
		}
	}
	if len(is) != len(was) {
		t.Errorf("%d lines, %s has %d", len(is), authTable, len(was))
	}
}

const tableHead = `# Who may use which page

Written by TestEveryRouteForEverybody with -update. Each cell is the answer's status, where it leads, and the tables in
which it changed something. Names in braces are the owner's; {own} is a project that everybody has under that name. Each
POST has the token of its browser and comes from the site's own pages; without the token, with another browser's, or from
another origin, each of them is a 403 that changes nothing. The suspended account was signed in when it was suspended.

| Request | Visitor | Another account | Suspended account | Owner |
|---|---|---|---|---|
`

func (h *authHouse) walk() string {
	out := tableHead
	for _, v := range walk {
		h.checkRefusals(v)
		cells := []string{v.name()}
		for _, b := range append(slices.Clone(h.others), h.owner) {
			a := h.try(b, v, h.things, asMeant)
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

// name says the request in a word; of the form only what names a thing of the owner's.
func (v visit) name() string {
	name := v.method() + " `" + cmp.Or(v.path, v.address()) + "`"
	if strings.Contains(v.form, "{project}") || strings.Contains(v.form, "{own}") {
		name += " `" + v.form + "`"
	}
	if v.first != "" {
		name += " after `" + v.first + "`"
	}
	return name
}

// names tells whether the request names one of the things.
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

// manner is how a form is sent.
type manner int

const (
	asMeant manner = iota
	withoutToken
	withOthersToken
	fromElsewhere
)

// answer is what came of a request. text is all of it that is the same each time, with the names of things in place of
// the things; leads is its Location in the same way.
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

// try makes the request as one of the browsers with things, or with the ones that do not exist.
func (h *authHouse) try(b *browser, v visit, things map[string]string, how manner) answer {
	h.t.Helper()
	if v.method() == http.MethodGet && b.account == "" {
		b = &browser{name: b.name} // the first visit of a browser
	}
	values := h.valuesOf(b, things)
	q := request{method: v.method(), path: fillIn(cmp.Or(v.path, v.address()), values), pattern: v.pattern, socket: v.socket}
	if q.method == http.MethodPost || v.socket {
		q.origin = map[bool]string{true: "https://elsewhere.example", false: siteURL}[how == fromElsewhere]
	}
	if q.method == http.MethodPost {
		h.fillForm(b, v, &q, values, how)
	}
	res, body := h.send(b, q)
	a := answer{status: res.StatusCode, header: res.Header, changes: h.db.changes()}
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
		if name != "Set-Cookie" { // a new visitor's is another one each time, and so is the token below
			all += name + ": " + strings.Join(a.header[name], ", ") + "\n"
		}
	}
	a.text = restore(csrfOf.ReplaceAllString(all+"\n"+body, ""))
	return a
}

// valuesOf gives what the braces of a visit stand for. A mailed link is the owner's own secret: others guess.
func (h *authHouse) valuesOf(b *browser, things map[string]string) map[string]string {
	values := maps.Clone(h.things)
	maps.Copy(values, things)
	values["own"], values["email"] = "com.example.own", b.email
	if b != h.owner {
		values["reset"], values["verify"] = h.missing["reset"], h.missing["verify"]
	}
	return values
}

func (h *authHouse) fillForm(b *browser, v visit, q *request, values map[string]string, how manner) {
	h.t.Helper()
	var err error
	q.form, err = url.ParseQuery(fillIn(v.form, values))
	h.must(err)
	if v.first != "" {
		res, body := h.send(b, request{method: http.MethodGet, path: fillIn(v.first, values)})
		for _, c := range res.Cookies() {
			if !strings.HasSuffix(c.Name, "service-test") { // a moment's
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

// checkRefusals: a form that is not sent from our own page in this very browser does nothing, whoever sends it.
func (h *authHouse) checkRefusals(v visit) {
	h.t.Helper()
	if v.socket {
		if a := h.try(h.owner, v, h.things, fromElsewhere); a.status != http.StatusForbidden {
			h.t.Errorf("%s by the owner from another origin: %s", v.name(), a.cell())
		}
	}
	if v.method() != http.MethodPost {
		return
	}
	for _, b := range append(slices.Clone(h.others), h.owner) {
		for how, words := range map[manner]string{withoutToken: "without a token", withOthersToken: "with another's token", fromElsewhere: "from another origin"} {
			if a := h.try(b, v, h.things, how); a.status != http.StatusForbidden || len(a.changes) > 0 {
				h.t.Errorf("%s by %s %s: %s", v.name(), b.name, words, a.cell())
			}
		}
	}
}

func (h *authHouse) checkHeaders(b *browser, v visit, a answer) {
	h.t.Helper()
	want := map[string]string{"Cache-Control": "no-store", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
	frames := "frame-ancestors 'none'"
	if v.public {
		delete(want, "Cache-Control")
	}
	if v.framed && a.status == http.StatusOK {
		want["X-Frame-Options"], frames = "SAMEORIGIN", "frame-ancestors 'self'"
		if v.public {
			want["X-Frame-Options"], frames = "", "frame-ancestors *"
		}
	}
	if a.status == http.StatusMovedPermanently {
		return // to another address of the same public page
	}
	for name, value := range want {
		if a.header.Get(name) != value {
			h.t.Errorf("%s for %s: %s is %q", v.name(), b.name, name, a.header.Get(name))
		}
	}
	if policy := a.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, frames) {
		h.t.Errorf("%s for %s: the policy is %q", v.name(), b.name, policy)
	}
	if strings.Contains(a.text, pastedKey) {
		h.t.Errorf("%s shows %s a credential's value", v.name(), b.name)
	}
}

func (h *authHouse) checkOwner(v visit, a answer) {
	h.t.Helper()
	if acted := len(a.changes) > 0; acted != v.acts {
		h.t.Errorf("%s by the owner: %s, and acts is %t", v.name(), a.cell(), v.acts)
	}
	fine := a.status < http.StatusBadRequest || strings.Contains(v.path, "{own}/keys") // a key is not found in another project
	if (v.acts || v.whose == owned) && !fine {
		h.t.Errorf("%s by the owner: %s", v.name(), a.cell())
	}
}

// checkStranger: nothing of the owner's is shown or acted on, nor can anybody tell whether it is there.
func (h *authHouse) checkStranger(b *browser, v visit, a answer) {
	h.t.Helper()
	said := a.text
	if b.account == "" {
		said = strings.ReplaceAll(said, h.owner.email, "")
	}
	if strings.Contains(strings.ToLower(said), canary) && !v.framed {
		h.t.Errorf("%s shows %s something of the owner's:\n%s", v.name(), b.name, a.text)
	}
	h.checkUntouched(b, v, a)
	out := a.status == http.StatusUnauthorized || a.status == http.StatusSeeOther && strings.HasPrefix(a.leads, "/signin?next=/")
	switch {
	case v.whose == open:
		return
	case b.account == "":
		if !out {
			h.t.Errorf("%s by %s: %s", v.name(), b.name, a.cell())
		}
	case b == h.others[2]: // its session is over, and with it the token
		if !out && (a.status != http.StatusForbidden || v.method() != http.MethodPost) {
			h.t.Errorf("%s by %s: %s", v.name(), b.name, a.cell())
		}
	case v.whose == owned:
		if a.status != http.StatusNotFound && a.status != http.StatusGone {
			h.t.Errorf("%s by %s: %s", v.name(), b.name, a.cell())
		}
	}
	if !v.names(h.missing) {
		return
	}
	if none := h.try(b, v, h.missing, asMeant); none.text != a.text || none.leads != a.leads {
		h.t.Errorf("%s by %s tells what is there from what is not:\n%s\n--- and ---\n%s", v.name(), b.name, a.text, none.text)
	}
}

// checkUntouched: reading changes nothing, and what strangers change is their own.
func (h *authHouse) checkUntouched(b *browser, v visit, a answer) {
	h.t.Helper()
	signedIn := b == h.others[1]
	read := v.method() == http.MethodGet && !v.acts
	if (read || v.whose == owned || v.whose == self && !signedIn) && len(a.changes) > 0 {
		h.t.Errorf("%s by %s changed something: %v", v.name(), b.name, a.changes)
	}
	for name, rows := range a.changes {
		for _, row := range rows {
			if strings.Contains(row, h.owner.account) || v.whose == self && !strings.Contains(row, b.account) {
				h.t.Errorf("%s by %s changed in %s: %s", v.name(), b.name, name, row)
			}
		}
	}
}
