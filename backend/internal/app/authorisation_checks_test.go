package app

import (
	"net/http"
	"slices"
	"strings"
)

// checkRefusals checks that forms sent without a token, with another browser's token or from another origin are refused
// and change nothing, for every sender.
func (h *authWorld) checkRefusals(v visit) {
	h.t.Helper()
	if v.socket {
		if a := h.ask(h.owner, v, h.things, fromElsewhere); a.status != http.StatusForbidden {
			h.t.Errorf("%s by the owner from another origin: got %s, want 403", v.name(), a.cell())
		}
	}
	if v.method() != http.MethodPost {
		return
	}
	for _, b := range append(slices.Clone(h.others), h.owner) {
		for how, words := range map[manner]string{withoutToken: "without a token", withOthersToken: "with another's token",
			fromElsewhere: "from another origin"} {
			if a := h.ask(b, v, h.things, how); a.status != http.StatusForbidden {
				h.t.Errorf("%s by %s %s: got %s, want 403", v.name(), b.name, words, a.cell())
			}
		}
	}
	if changes := h.db.changes(); len(changes) > 0 {
		h.t.Errorf("%s was refused but changed the database: %v", v.name(), changes)
	}
}

func (h *authWorld) checkHeaders(b *browser, v visit, a answer) {
	h.t.Helper()
	want := map[string]string{"Cache-Control": "no-store", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin", "Strict-Transport-Security": "max-age=31536000"}
	frames := "frame-ancestors 'none'"
	if v.public {
		delete(want, "Cache-Control")
	}
	if v.framed && a.status == http.StatusOK {
		want["X-Frame-Options"], frames = "SAMEORIGIN", "frame-ancestors 'self'"
		if v.public {
			want["X-Frame-Options"], frames = "", "frame-ancestors *"
			want["Cross-Origin-Resource-Policy"] = "cross-origin"
		}
	}
	if a.status == http.StatusMovedPermanently {
		return // redirects to another address of the same public page
	}
	for name, value := range want {
		if a.header.Get(name) != value {
			h.t.Errorf("%s for %s: header %s is %q, which is not the required value", v.name(), b.name, name, a.header.Get(name))
		}
	}
	if policy := a.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") ||
		!strings.Contains(policy, frames) {
		h.t.Errorf("%s for %s: got policy %q, want default-src 'none' and the allowed frames", v.name(), b.name, policy)
	}
	if strings.Contains(a.text, pastedKey) {
		h.t.Errorf("%s: the response to %s contains the value of a credential", v.name(), b.name)
	}
}

func (h *authWorld) checkOwner(v visit, a answer) {
	h.t.Helper()
	if acted := len(a.changes) > 0; acted != v.acts {
		h.t.Errorf("%s by the owner: got %s, want a change to the database: %t", v.name(), a.cell(),
			v.acts)
	}
	// a key is not found under another project
	fine := a.status < http.StatusBadRequest || v.refused || strings.Contains(v.path, "{own}/keys/{key}")
	if (v.acts || v.whose == owned) && !fine {
		h.t.Errorf("%s by the owner: got %s, want success", v.name(), a.cell())
	}
}

// checkStranger checks that a stranger can neither see nor change the owner's resources, nor find out whether they
// exist.
func (h *authWorld) checkStranger(b *browser, v visit, a answer) {
	h.t.Helper()
	said := a.text
	if b.account == "" {
		said = strings.ReplaceAll(said, h.owner.email, "")
	}
	if strings.Contains(strings.ToLower(said), canary) && !v.framed {
		h.t.Errorf("%s: the response to %s contains data of the owner:\n%s", v.name(), b.name, a.text)
	}
	h.checkUntouched(b, v, a)
	out := a.status == http.StatusUnauthorized || a.status == http.StatusSeeOther &&
		strings.HasPrefix(a.leads, "/signin?next=/")
	switch {
	case v.whose == open:
		return
	case b.account == "":
		if !out {
			h.t.Errorf("%s by %s: got %s, want a redirect to sign in", v.name(), b.name, a.cell())
		}
	case b == h.others[2]: // its session has ended, so its token is invalid
		if !out && (a.status != http.StatusForbidden || v.method() != http.MethodPost) {
			h.t.Errorf("%s by %s: got %s, want a redirect to sign in, or 403 for a form", v.name(), b.name, a.cell())
		}
	case v.whose == owned:
		if a.status != http.StatusNotFound && a.status != http.StatusGone {
			h.t.Errorf("%s by %s: got %s, want 404 or 410", v.name(), b.name, a.cell())
		}
	}
	if !v.names(h.missing) {
		return
	}
	if none := h.try(b, v, h.missing); none.text != a.text || none.leads != a.leads {
		h.t.Errorf("%s by %s: existing and missing resources got different responses:\n%s\n--- and ---\n%s", v.name(),
			b.name, a.text, none.text)
	}
}

// checkUntouched checks that reads change nothing and that strangers change only their own data.
func (h *authWorld) checkUntouched(b *browser, v visit, a answer) {
	h.t.Helper()
	signedIn := b == h.others[1]
	read := v.method() == http.MethodGet && !v.acts
	if (read || v.whose == owned || v.whose == self && !signedIn) && len(a.changes) > 0 {
		h.t.Errorf("%s by %s changed %v, want no change", v.name(), b.name, a.changes)
	}
	for name, rows := range a.changes {
		for _, row := range rows {
			if strings.Contains(row, h.owner.account) || v.whose == self && !strings.Contains(row, b.account) {
				h.t.Errorf("%s by %s changed %s: %s", v.name(), b.name, name, row)
			}
		}
	}
}
