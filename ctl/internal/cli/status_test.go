package cli

import (
	"strings"
	"testing"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/proto/buildinfo"
	"github.com/service-dev/service/proto/rendezvous"
)

// Status tells of a daemon of another protocol or build in either direction, and what to do.
func TestVersionNeeds(t *testing.T) {
	same := client.Status{Version: buildinfo.Version, ProtocolMin: rendezvous.ProtocolMin, ProtocolMax: rendezvous.ProtocolMax}
	cases := map[string]struct {
		min, max   uint32
		version    string
		replaced   bool
		what, next string
	}{
		"the same":                   {same.ProtocolMin, same.ProtocolMax, same.Version, false, "", ""},
		"of before ranges were told": {0, 0, same.Version, false, "", ""},
		"another build":              {1, 9, "0.0.1", false, "the daemon is 0.0.1", "daemon restart"},
		"an upgrade waits":           {1, 1, same.Version, true, "another serviced lies at", "daemon restart"},
		"a newer protocol":           {rendezvous.ProtocolMax + 1, rendezvous.ProtocolMax + 2, "9.0.0", false, "too old for the daemon (9.0.0)", "upgrade this program"},
	}
	for name, c := range cases {
		s := &client.Status{Version: c.version, ProtocolMin: c.min, ProtocolMax: c.max, Replaced: c.replaced, Program: "/x/serviced"}
		need := versionNeed(s)
		if c.what == "" {
			if need != nil {
				t.Errorf("%s: %+v", name, *need)
			}
			continue
		}
		if need == nil || !strings.Contains(need.What, c.what) || !strings.Contains(need.Next, c.next) {
			t.Errorf("%s: %+v", name, need)
		}
		if check := versionCheck(s); !c.replaced && (check.State == "ok" || check.Fix == "") {
			t.Errorf("%s: doctor says %+v", name, check)
		}
	}
}

func TestUnusableConfigIsANeed(t *testing.T) {
	s := &client.Status{Version: buildinfo.Version, ProtocolMin: rendezvous.ProtocolMin, ProtocolMax: rendezvous.ProtocolMax, Backend: &client.Backend{Kind: "embedded"}, Link: &client.Link{State: "not_linked"},
		ConfigProblem: "reading config.yaml: it is empty"}
	if list := needs(s); len(list) != 1 || !strings.Contains(list[0].What, "it is empty") || !strings.Contains(list[0].Next, "config.yaml") {
		t.Errorf("%+v", list)
	}
}
