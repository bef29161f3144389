package assistant

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
)

// With models for realtime sessions, only those that the gateway offers can be chosen, with the voices that it knows.
func TestChoices_AreWhatTheGatewayOffers(t *testing.T) {
	s := newService(t)
	choices := func() Catalogue {
		c, err := s.Choices(t.Context(), "ada", app)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := choices(); len(c.Effective) != 0 || len(c.RealtimeModels) != 3 || len(c.Voices) != 4 {
		t.Errorf("without a gateway: got %+v, want every choice and no effect", c)
	}
	price := SoundPrice{In: 19_200, Out: 76_800, InRate: 10, OutRate: 20}
	s.RealtimeModels = func(context.Context, string, string) ([]Offer, error) {
		return []Offer{
			{ID: "realtime-standard", Voices: []string{"ember", "slate", "unknown"}, Price: price},
			{ID: "realtime-swift", Voices: []string{"ember"}, Why: "no price for audio_out"},
			{ID: "not-in-the-catalogue", Voices: []string{"ember"}},
		}, nil
	}
	c := choices()
	if !slices.Equal(c.Effective, []string{"realtimeModel", "voice"}) || c.HasEffect("memoryModel") ||
		!slices.Equal(modelIDs(c.RealtimeModels), []string{"realtime-standard", "realtime-swift"}) ||
		!slices.Equal(c.RealtimeModels[0].Voices, []string{"ember", "slate"}) || len(c.Voices) != 2 ||
		*c.Realtime(Config{RealtimeModel: "realtime-standard"}) != price {
		t.Errorf("got %+v, want the offered models and voices", c)
	}
	if len(s.Catalogue.RealtimeModels[0].Voices) != 4 || len(s.Catalogue.Voices) != 4 {
		t.Errorf("the operator's catalogue was changed: %+v", s.Catalogue)
	}
	for name, tc := range map[string]struct {
		change Change
		want   string
	}{
		"model without a provider": {Change{RealtimeModel: ptr("realtime-thoughtful")}, "choose one of realtime-standard"},
		"model without a price":    {Change{RealtimeModel: ptr("realtime-swift")}, "currently not offered: no price"},
		"voice without a name":     {Change{Voice: ptr("willow")}, "choose one of ember, slate"},
	} {
		_, _, err := s.Change(t.Context(), "ada", app, tc.change, audit.Person())
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(invalid.Message, tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	if _, _, err := s.Change(t.Context(), "ada", app, Change{Voice: ptr("slate")}, audit.Person()); err != nil {
		t.Errorf("set an offered voice: %v", err)
	}
}

// A model that has lost its last voice is listed with the reason.
func TestChoices_ModelWithoutVoices(t *testing.T) {
	s := newService(t)
	s.RealtimeModels = func(context.Context, string, string) ([]Offer, error) {
		return []Offer{{ID: "realtime-standard", Voices: []string{"other"}}}, nil
	}
	c, err := s.Choices(t.Context(), "ada", app)
	if err != nil || len(c.RealtimeModels) != 1 || !strings.Contains(c.RealtimeModels[0].Why, "voices") {
		t.Errorf("got %+v, %v", c.RealtimeModels, err)
	}
}
