package cli

import (
	"strings"
	"testing"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/rendezvous"
)

// Status reports a daemon whose protocol or build is older or newer than the program's, with the next step.
func TestNeeds_Versions(t *testing.T) {
	defer func(was string) { buildinfo.Version = was }(buildinfo.Version)
	buildinfo.Version = "1.2.3"
	same := client.Status{Version: buildinfo.Version, ProtocolMin: rendezvous.ControlProtocolMin,
		ProtocolMax: rendezvous.ControlProtocolMax}
	cases := map[string]struct {
		min, max   int
		version    string
		replaced   bool
		what, next string
	}{
		"the same":                  {same.ProtocolMin, same.ProtocolMax, same.Version, false, "", ""},
		"another build of it":       {1, 9, "1.2.3+deb12", false, "", ""},
		"a build without a version": {1, 9, "dev", false, "", ""},
		"an older daemon": {1, 9, "1.2.3-rc.1", false, "the daemon (1.2.3-rc.1) is older",
			"daemon restart"},
		"a newer daemon": {1, 9, "1.10.0", false, "this program (1.2.3) is older",
			"upgrade this program"},
		"an upgrade needs a restart": {1, 1, same.Version, true, "was replaced after the daemon", "daemon restart"},
		"possibly a downgrade needs a restart": {1, 1, "1.3.0", true, "this program (1.2.3) is older",
			"upgrade this program"},
		"a newer protocol": {rendezvous.ControlProtocolMax + 1, rendezvous.ControlProtocolMax + 2, "9.0.0", false,
			"too old for the daemon (9.0.0)", "upgrade this program"},
	}
	for name, c := range cases {
		s := &client.Status{Version: c.version, ProtocolMin: c.min, ProtocolMax: c.max, Replaced: c.replaced,
			Program: "/x/serviced"}
		need := versionNeed(s)
		if c.what == "" {
			if need != nil {
				t.Errorf("%s: got %+v, want nothing needed", name, *need)
			}
			continue
		}
		if need == nil || !strings.Contains(need.What, c.what) || !strings.Contains(need.Next, c.next) {
			t.Errorf("%s: got need %+v, want %q and next step %q", name, need, c.what, c.next)
		}
		if check := versionCheck(s); !c.replaced && (check.State == "ok" || check.Fix == "") {
			t.Errorf("%s: doctor reports %+v, want a problem with a fix", name, check)
		}
	}
}

func TestNeeds_UnusableConfig(t *testing.T) {
	s := &client.Status{Version: buildinfo.Version, ProtocolMin: rendezvous.ControlProtocolMin,
		ProtocolMax: rendezvous.ControlProtocolMax, Backend: client.Backend{Kind: "embedded"},
		Link:          client.Link{State: "not_linked"},
		ConfigProblem: "read config.yaml: it is empty"}
	if list := needs(s); len(list) != 1 || !strings.Contains(list[0].What, "it is empty") ||
		!strings.Contains(list[0].Next, "config.yaml") {
		t.Errorf("got needs %+v, want one that names config.yaml", list)
	}
}
