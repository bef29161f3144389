package grants_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/grants"
)

// TestLevels checks which required levels each granted level allows.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		granted, needed grants.Level
		ok              bool
	}{
		{grants.Off, grants.Read, false}, {grants.Off, grants.ReadWrite, false},
		{grants.Read, grants.Read, true}, {grants.Read, grants.ReadWrite, false},
		{grants.ReadWrite, grants.Read, true}, {grants.ReadWrite, grants.ReadWrite, true},
		{"nonsense", grants.Read, false}, {"", grants.Read, false},
	} {
		g := grants.Grants{Credentials: c.granted}
		err := g.Require("com.example.app", grants.Credentials, "", c.needed)
		if (err == nil) != c.ok {
			t.Errorf("granted %q, needed %q: got error %v, want it only if the level is too low", c.granted, c.needed, err)
		}
		var denied *grants.DeniedError
		if err != nil && (!errors.As(err, &denied) || denied.Needed != c.needed || denied.Granted != c.granted ||
			denied.Capability != grants.Credentials) {
			t.Errorf("granted %q, needed %q: got %+v, want a DeniedError with both levels", c.granted, c.needed, denied)
		}
	}
}

// Each field of the assistant's configuration has a level. The level of the whole configuration is the highest of
// them.
func TestFields(t *testing.T) {
	g := grants.Default()
	for _, f := range grants.Fields() {
		g.Assistant[f] = grants.Off
	}
	if err := g.Require("com.example.app", grants.Assistant, "", grants.Read); err == nil {
		t.Error("the config can be read with every field off")
	}
	g.Assistant[grants.Voice] = grants.Read
	if err := g.Require("com.example.app", grants.Assistant, "", grants.Read); err != nil {
		t.Error(err)
	}
	err := g.Require("com.example.app", grants.Assistant, grants.Sounds, grants.Read)
	if err == nil || !strings.Contains(err.Error(), "assistant_config.sounds") {
		t.Errorf("reading sounds: got error %v, want it to name assistant_config.sounds", err)
	}
	if g.Of(grants.Assistant, "colour").Allows(grants.Read) || g.Of("colour", "").Allows(grants.Read) {
		t.Error("an unknown field or capability can be read")
	}
}
