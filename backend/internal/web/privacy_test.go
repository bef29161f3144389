package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/telemetry"
)

// The privacy page lists the same events as the code, and explains when they are sent and how to view, stop and erase
// them.
func TestPrivacyPage_ListsEveryEvent(t *testing.T) {
	site := newSite(t, newPeople(t), func(o *Options) { o.Embedded = false })
	v := visit(t, site).get("/").want(http.StatusOK, `href="/privacy"`).get("/privacy").want(http.StatusOK,
		"90 days", "decline-privacy", "SERVICE_TELEMETRY=0", "DO_NOT_TRACK=1", "telemetry tail", "telemetry purge",
		"Nothing is sent before",
		"random half of the event's id and the hours in which it happened and arrived",
		"a keyed hash of the account's id, for 90 days", "For 400 days, what was done in your account",
		"The event log is deleted when the session is closed, and 30 days after", "100000 rows and 64 MB", "together 1 GB",
		"numbers only, never what was said, by whom or from where",
		"hour for 400 days, single calls for 30 days, at most 10,000 of a project",
		"keyed hashes of the e-mail address and the network that it was granted to are kept for 90 days",
		"under a random name that no longer identifies anybody", "Remaining credit is lost")
	visit(t, newSite(t, newPeople(t), func(o *Options) { o.Embedded = true })).get("/privacy").want(http.StatusOK,
		"Nothing is sent: this backend")
	for _, d := range telemetry.List() {
		v.want(http.StatusOK, "<code>"+d.Name+"</code>", d.When)
		for _, f := range d.Fields {
			v.want(http.StatusOK, "<code>"+f.Name+"</code>: "+f.What)
		}
	}
	if n := strings.Count(v.page, "<code>account."); n != 3 {
		t.Errorf("the page lists %d events of accounts, want 3", n)
	}
}
