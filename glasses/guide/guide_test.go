package guide_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/guide"
)

func TestEveryCommandBelongsToOneCapability(t *testing.T) {
	owners := map[string]int{}
	for _, c := range guide.Capabilities() {
		for _, command := range c.Commands {
			owners[command]++
			if !glasses.IsCommand(command) {
				t.Errorf("%s lists %s, which is not a command", c.ID, command)
			}
		}
		for _, event := range c.Events {
			if !glasses.FromGlasses(event) {
				t.Errorf("%s lists %s, which is not an event of the glasses", c.ID, event)
			}
		}
	}
	for _, command := range glasses.Commands() {
		if owners[command.Type] != 1 {
			t.Errorf("%s belongs to %d capabilities, want 1", command.Type, owners[command.Type])
		}
	}
}

func TestHas(t *testing.T) {
	g1, _ := glasses.Model("even_g1")
	for _, test := range []struct {
		capability string
		want       bool
	}{{guide.Display, true}, {guide.Camera, false}, {guide.Transcription, true}, {guide.Speech, false},
		{guide.Motion, false}, {guide.State, true}, {"smell", false}} {
		if got := guide.Has(g1, test.capability); got != test.want {
			t.Errorf("even_g1 has the capability %s: got %v, want %v", test.capability, got, test.want)
		}
	}
}

func TestPhrases(t *testing.T) {
	for _, test := range []struct {
		phrases []string
		want    []string // codes
	}{
		{nil, nil},
		{[]string{"start the timer", "show my list", "next recipe"}, nil},
		{[]string{"Hey Meta, take a note"}, []string{guide.PhraseWakeWord}},
		{[]string{"alexander the great"}, nil},
		{[]string{"go"}, []string{guide.PhraseTooShort}},
		{[]string{"please be so kind as to start"}, []string{guide.PhraseManyWords}},
		{[]string{"set timer 5"}, []string{guide.PhraseSymbols}},
		{[]string{"start timer", "Start, timer!"}, []string{guide.PhraseSame}},
		{[]string{"start timer", "start timers"}, []string{guide.PhraseAlike}},
		{[]string{"next page", "next page please"}, []string{guide.PhraseBeginning}},
		{[]string{strings.Repeat("long ", 21)}, []string{guide.PhraseTooLong, guide.PhraseManyWords}},
		{slices.Repeat([]string{""}, 51), nil},
	} {
		var got []string
		for _, p := range guide.CheckPhrases(test.phrases) {
			got = append(got, p.Code)
			if p.Message == "" || p.Fix == "" {
				t.Errorf("%q: %+v has no message or no fix", p.Phrase, p)
			}
		}
		if len(test.phrases) > glasses.MaxPhrases {
			if got[0] != guide.PhraseTooMany {
				t.Errorf("%d phrases: problems %v, want too many", len(test.phrases), got[:2])
			}
			continue
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: %v, want %v", test.phrases, got, test.want)
		}
	}
}

func TestDeclarationsNameCapabilities(t *testing.T) {
	for _, platform := range guide.Platforms() {
		list := guide.Declarations(platform)
		if len(list) == 0 {
			t.Errorf("%s has no declarations", platform)
		}
		for _, d := range list {
			for _, c := range d.Capabilities {
				if _, ok := guide.CapabilityOf(c); !ok {
					t.Errorf("%s: %s names the unknown capability %q", platform, d.Key, c)
				}
			}
			if d.File == "" || d.Key == "" || d.Value == "" || d.Why == "" || d.When == "" {
				t.Errorf("%s: %+v has empty fields", platform, d)
			}
		}
	}
}

func FuzzPhrases(f *testing.F) {
	f.Add("start the timer", "start timers")
	f.Add("", "\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)+len(b) > 4096 {
			return
		}
		for _, p := range guide.CheckPhrases([]string{a, b}) {
			if p.Code == "" || p.Fix == "" {
				t.Errorf("%q %q: %+v", a, b, p)
			}
		}
	})
}
