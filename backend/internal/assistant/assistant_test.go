package assistant

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/dbtest"
)

const app = "com.example.app"

func newService(t testing.TB) *Service {
	t.Helper()
	c, err := LoadCatalogue("")
	if err != nil {
		t.Fatal(err)
	}
	d := dbtest.Open(t)
	dbtest.AddAccount(t, d, "ada")
	dbtest.AddProject(t, d, "ada", app)
	return &Service{Store: NewStore(d), Catalogue: c, Now: time.Now}
}

// auditEntries returns the audit entries, newest first.
func auditEntries(t *testing.T, s *Service) []audit.Entry {
	t.Helper()
	all, err := audit.NewStore(s.Store.DB).AuditEntries(t.Context(), "ada", audit.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func ptr[T any](v T) *T { return &v }

func TestFits_RefusesUnknownValues(t *testing.T) {
	s := newService(t)
	for _, tc := range []struct {
		name    string
		change  Change
		field   string
		message []string
	}{
		{"empty", Change{}, "", []string{"empty"}},
		{"unknown model", Change{RealtimeModel: ptr("gpt")}, "realtimeModel", []string{`"gpt"`,
			"realtime-standard, realtime-swift"}},
		{"unknown memory", Change{MemoryModel: ptr("realtime-swift")}, "memoryModel",
			[]string{"memory-none, memory-compact"}},
		{"unknown voice", Change{Voice: ptr("")}, "voice", []string{"ember, harbor"}},
		{"far too long", Change{Voice: ptr(strings.Repeat("x", 9999))}, "voice", []string{"ember, harbor"}},
		{"voice of another model", Change{RealtimeModel: ptr("realtime-swift"), Voice: ptr("slate")}, "voice",
			[]string{"slate", "only with ember, harbor"}},
	} {
		_, _, err := s.Change(t.Context(), "ada", app, tc.change, audit.Person())
		var invalid *InvalidError
		if !errors.As(err, &invalid) || invalid.Field != tc.field || len(invalid.Message) > 400 {
			t.Errorf("%s: got %v, want an InvalidError of the field with a short message", tc.name, err)
			continue
		}
		for _, part := range tc.message {
			if !strings.Contains(invalid.Message, part) {
				t.Errorf("%s: message %q lacks %q", tc.name, invalid.Message, part)
			}
		}
	}
	if all := auditEntries(t, s); len(all) != 0 {
		t.Errorf("stored entries %v, want none", all)
	}
}

// A model that cannot speak with the current voice must be set together with a new voice, and vice versa.
func TestFits_ModelAndVoiceMatch(t *testing.T) {
	s := newService(t)
	change := func(version int64, model, voice *string) error {
		_, _, err := s.Change(t.Context(), "ada", app, Change{Version: version, RealtimeModel: model,
			Voice: voice}, audit.Person())
		return err
	}
	if err := change(0, nil, ptr("slate")); err != nil {
		t.Fatal(err)
	}
	err := change(1, ptr("realtime-swift"), nil)
	if invalid := (*InvalidError)(nil); !errors.As(err, &invalid) || !strings.Contains(invalid.Message,
		"one of ember, harbor") || strings.Contains(invalid.Message, "slate") {
		t.Errorf("set the model alone: got %v, want an error that lists its voices", err)
	}
	if err := change(1, ptr("realtime-swift"), ptr("harbor")); err != nil {
		t.Errorf("both: %v", err)
	}
	err = change(2, nil, ptr("slate"))
	if invalid := (*InvalidError)(nil); !errors.As(err, &invalid) || !strings.Contains(invalid.Message,
		"speaks with ember, harbor") {
		t.Errorf("set the voice alone: got %v, want an error that lists the voices of the set model", err)
	}
}

func TestApply_CurrentValueIsNoChange(t *testing.T) {
	s := newService(t)
	before, after, err := s.Change(t.Context(), "ada", app, Change{Voice: ptr("ember"), Sounds: ptr(true)},
		audit.Person())
	if err != nil || before != after || after.Version != 0 || len(auditEntries(t, s)) != 0 {
		t.Errorf("set an unchanged value: got config %+v before and %+v after, error %v, %d entries; want no new version",
			before, after, err, len(auditEntries(t, s)))
	}
	if _, _, err := s.Change(t.Context(), "ada", app, Change{Version: 7, Voice: ptr("ember")},
		audit.Person()); !errors.Is(err, ErrConflict) {
		t.Errorf("change of another version: got %v, want ErrConflict", err)
	}
}

// An ID that the operator removed from the catalogue remains set until it is changed, and cannot be chosen again.
func TestGone_ListsRemovedIDs(t *testing.T) {
	s := newService(t)
	s.Catalogue.RealtimeModels[0].Price, s.Catalogue.MemoryModels[1].Price = ptr(int64(60)), ptr(int64(5))
	change := func(c Change) error {
		stored, err := s.Store.AssistantConfig(t.Context(), "ada", app)
		if err != nil {
			t.Fatal(err)
		}
		c.Version = stored.Version
		_, _, err = s.Change(t.Context(), "ada", app, c, audit.Person())
		return err
	}
	if err := change(Change{Sounds: ptr(false)}); err != nil {
		t.Fatal(err)
	}
	c, err := s.Get(t.Context(), "ada", app)
	if err != nil {
		t.Fatal(err)
	}
	if cost := s.Cost(c); cost == nil || *cost != 65 {
		t.Errorf("got cost %v, want 65", cost)
	}
	s.Catalogue.RealtimeModels = s.Catalogue.RealtimeModels[1:]
	c, err = s.Get(t.Context(), "ada", app)
	choices, choicesErr := s.Choices(t.Context(), "ada", app)
	if err != nil || choicesErr != nil || c.RealtimeModel != "realtime-standard" || s.Cost(c) != nil ||
		!slices.Equal(choices.Gone(c), []string{"realtime-standard"}) {
		t.Errorf("got config %+v, cost %v, gone %v (error %v), want the removed model without a cost", c, s.Cost(c),
			choices.Gone(c), errors.Join(err, choicesErr))
	}
	if err := change(Change{Sounds: ptr(true)}); err != nil {
		t.Errorf("change another field: %v", err)
	}
	if err := change(Change{Voice: ptr("slate")}); err == nil || !strings.Contains(err.Error(),
		"in the same change, set realtimeModel") {
		t.Errorf("set a voice for a removed model: got %v, want a hint to set the model too", err)
	}
	if err := change(Change{RealtimeModel: ptr("realtime-swift")}); err != nil {
		t.Errorf("change to another model: %v", err)
	}
	left := auditEntries(t, s)[0]
	if err := change(Change{RealtimeModel: ptr("realtime-standard")}); err == nil {
		t.Error("a removed ID was accepted again")
	}
	if invalid := (*InvalidError)(nil); !errors.As(s.Undo(t.Context(), "ada", left, audit.Person()), &invalid) {
		t.Error("undo to a removed ID did not fail with an InvalidError")
	}
}

func TestChange_Names(t *testing.T) {
	c := Change{Sounds: ptr(true), Voice: ptr("x"), RealtimeModel: ptr("y")}
	if got := c.Names(); !slices.Equal(got, []string{"realtimeModel", "voice", "sounds"}) {
		t.Errorf("got names %v, want realtimeModel, voice and sounds", got)
	}
}

const small = `
realtime_models: [{id: r, name: R, voices: [v], price_micro_usd_per_minute: 60000}]
memory_models: [{id: m, name: M}]
voices: [{id: v, name: V}]
defaults: {realtime_model: r, voice: v, memory_model: m, session_memory: true, sounds: false}
`

func TestLoadCatalogue(t *testing.T) {
	load := func(text string) (Catalogue, error) {
		path := filepath.Join(t.TempDir(), "models.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return LoadCatalogue(path)
	}
	c, err := load(small)
	if err != nil || *c.RealtimeModels[0].Price != 60000 || c.MemoryModels[0].Price != nil || !c.Defaults.SessionMemory {
		t.Fatalf("got %+v (error %v), want the prices and defaults of the file", c, err)
	}
	for _, tc := range []struct{ from, to, say string }{
		{"name: R", "title: R", "title"},
		{"voices: [v]", "voices: [w]", `realtime_models, r: voices contains "w"`},
		{"voices: [v]", "voices: [v, v]", "realtime_models, r: voices contains v twice"},
		{"voices: [v],", "", "realtime_models, r: voices must list"},
		{"{id: m, name: M}", "{id: m, name: M, voices: [v]}", "memory_models, m: voices"},
		{"{id: v, name: V}", "{id: v, name: V}, {id: v, name: V2}", "voices, entry 2: the id v occurs twice"},
		{"{id: v, name: V}", "{id: V, name: V}", "voices, entry 1"},
		{"name: M", "name: ' '", "memory_models, m: name is missing"},
		{"60000", "-1", "realtime_models, r: price"},
		{"60000", "0.5", "line 2"},
		{"realtime_model: r", "realtime_model: x", `defaults, realtime_model: "x"`},
		{"voice: v", "voice: ''", `defaults, voice: ""`},
		{"memory_model: m", "memory_model: r", `defaults, memory_model: "r"`},
		{"memory_models: [{id: m, name: M}]", "", "memory_models must have 1 to"},
		{"sounds: false}", "sounds: false}\n---\n{}", "more than one document"},
		{small, "", "empty"},
		{small, strings.Repeat("#", MaxCatalogueBytes+1), "256 KB"},
	} {
		_, err := load(strings.Replace(small, tc.from, tc.to, 1))
		if err == nil || !strings.Contains(err.Error(), tc.say) || !strings.Contains(err.Error(), "models.yaml") {
			t.Errorf("with %q instead of %q: got error %v, want the mistake and the file named", tc.to, tc.from, err)
		}
	}
	if _, err := LoadCatalogue(filepath.Join(t.TempDir(), "nothing.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v, want os.ErrNotExist", err)
	}
}

// Every accepted catalogue offers its default config and every voice that a model lists.
func FuzzCatalogue(f *testing.F) {
	f.Add([]byte(small))
	f.Add(builtIn)
	f.Add([]byte("defaults: &a [*a]"))
	f.Add([]byte("voices:\n- {id: v, id: w}"))
	s := newService(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse("models.yaml", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "models.yaml: ") {
				t.Fatalf("the error does not start with the file name: %v", err)
			}
			return
		}
		s := &Service{Store: s.Store, Catalogue: c, Now: time.Now}
		config, err := s.Get(t.Context(), "a", "b")
		if err != nil || len(c.Gone(config)) > 0 {
			t.Fatalf("accepted defaults that are not in the catalogue: %v (error %v)", c.Gone(config), err)
		}
		if err := c.fits(Config{}, config); err != nil {
			t.Fatalf("accepted defaults that do not fit together: %v", err)
		}
	})
}
