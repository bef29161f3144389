package web

import (
	"net/http"
	"testing"
)

// fetched requests a page like a browser that loads it for another site.
func (v *visitor) fetched(path string, header ...string) *visitor {
	v.t.Helper()
	req, err := http.NewRequest(http.MethodGet, v.site+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return v.do(req)
}

var (
	followedLink = []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	embeddings   = map[string][]string{
		"image":           {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
		"script":          {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"},
		"frame":           {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		"fetch":           {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"},
		"sibling's image": {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
		"prefetch":        append([]string{"Sec-Purpose", "prefetch"}, followedLink...),
	}
)

// If another site embeds a page with a code in a user's browser, that is not the user's guess. The code is not looked
// up or counted, and the response reveals nothing about it.
func TestEmbeddedByAnotherSite_IsRefused(t *testing.T) {
	f := newPeople(t, code)
	v := visit(t, newSite(t, f))
	for name, header := range embeddings {
		for range 3 * wrongCodesPerMinute {
			for _, path := range []string{"/activate?code=BBBB-BBBB", "/signin?next=%2Factivate%3Fcode%3DBBBB-BBBB"} {
				v.fetched(path, header...).want(http.StatusForbidden)
			}
		}
		wrong := v.page
		if v.fetched(page, header...); v.status != http.StatusForbidden || v.page != wrong {
			t.Errorf("%s: the responses to a correct and a wrong code differ: status %d", name, v.status)
		}
		if v.header.Get("Set-Cookie") != "" {
			t.Errorf("%s sets a cookie", name)
		}
	}
	v.fetched(page, followedLink...).want(http.StatusOK, code)
	v.signUp("ada@example.com", page).want(http.StatusOK, "Approve")
	v.post("/activate/approve?code="+code, v.tokens()).want(http.StatusSeeOther)
}

// A link that a user follows from another site is looked up and counted like any other link.
func TestLinksFromAnotherSite_Work(t *testing.T) {
	v := visit(t, newSite(t, newPeople(t, code)))
	v.fetched(page, followedLink...).want(http.StatusOK)
	for range wrongCodesPerMinute {
		v.fetched("/activate?code=BBBB-BBBB", followedLink...).want(http.StatusNotFound)
	}
	v.get(page).want(http.StatusNotFound)
}
