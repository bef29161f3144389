package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/proto/backendapi"
)

// radioSet is the data of the template "radio-cards".
type radioSet struct {
	Name, Legend, About, Error string
	Choices                    []choice
}

// settingTexts describe the settings.
var settingTexts = map[string]string{
	grants.RealtimeModel: "The AI model that listens to the wearer and answers by voice. Each model speaks with some " +
		"of the voices.",
	grants.Voice: "How the assistant sounds to the wearer.",
	grants.MemoryModel: "What the assistant still knows when the wearer talks to it the next time. Apps have to ask each " +
		"user first.",
	grants.TextModel: "The AI model that answers in writing when your app calls the model assistant. A token is a piece " +
		"of a word: a million tokens are about 750,000 words.",
}

// radioSets returns the catalogue as choices, with the values in v selected.
func radioSets(all assistant.Catalogue, v map[string]string) []radioSet {
	var realtime, memory []choice
	for _, m := range all.RealtimeModels {
		one := choice{ID: m.ID, Label: m.Name, About: sentences(m.Description,
			priceText(m.Price, "Costs %s for a minute of conversation."), soundSentence(m.Sound),
			"Speaks with "+inWords(voiceNames(all, m))+".")}
		if m.Why != "" {
			one.About, one.Off = "Not offered now: "+m.Why+".", m.ID != v[grants.RealtimeModel]
		}
		realtime = append(realtime, one)
	}
	for _, m := range all.MemoryModels {
		memory = append(memory, choice{ID: m.ID, Label: m.Name,
			About: sentences(m.Description, priceText(m.Price, "Adds %s to a minute of conversation."),
				mergeSentence(all, m, v[grants.TextModel]))})
	}
	set := func(field string, choices []choice) radioSet {
		return radioSet{Name: field, Legend: settingNames[field], About: settingTexts[field],
			Choices: selectChoice(choices, v[field])}
	}
	sets := []radioSet{set(grants.RealtimeModel, realtime), set(grants.Voice, voiceChoices(all)),
		set(grants.MemoryModel, memory)}
	if len(all.TextModels) > 0 || v[grants.TextModel] != "" {
		sets = append(sets, set(grants.TextModel, textModelChoices(all, v[grants.TextModel])))
	}
	return sets
}

// effectText describes which settings have an effect.
func effectText(all assistant.Catalogue) string {
	without := " Memory and sounds have no effect yet."
	remembers := all.HasEffect(grants.MemoryModel)
	if remembers {
		without = " Memory within a conversation and sounds have no effect yet."
	}
	switch voice, text := all.HasEffect(grants.RealtimeModel), all.HasEffect(grants.TextModel); {
	case voice && text:
		return "The models and the voice take effect with the next call." + without
	case voice:
		return "The conversation model and the voice take effect with the next call." + without
	case remembers:
		return "This server has no realtime models, so only the text model and memory between conversations have an effect."
	case text:
		return "This server has no realtime models, so only the text model has an effect."
	}
	return "This server has no models, so these settings have no effect."
}

// mergeSentence describes what a conversation that is remembered costs, or returns "" for a model that remembers
// nothing.
func mergeSentence(all assistant.Catalogue, m assistant.Model, text string) string {
	if m.ID == assistant.NoMemory {
		return ""
	}
	about := fmt.Sprintf("Each conversation of a user who has agreed costs your project one more call of a text model, "+
		"up to four if the notes change meanwhile, each of at most %s tokens that it reads and %s that it writes",
		grouped(assistant.MergeTokensIn), grouped(assistant.MergeTokensOut))
	switch cost, ok := all.MergeCost(m, text); {
	case ok && cost == 0:
		return about + ": nothing, because the model is free."
	case ok:
		return about + ": at most " + backendapi.Dollars(cost) + " a call."
	}
	return about + "."
}

func soundSentence(p *assistant.SoundPrice) string {
	if p == nil {
		return ""
	}
	return "Costs " + soundText(p) + "."
}

// soundText describes the estimated price of a minute of sound, or returns "".
func soundText(p *assistant.SoundPrice) string {
	switch {
	case p == nil:
		return ""
	case p.In+p.Out == 0:
		return "nothing"
	}
	return fmt.Sprintf("about %s for a minute that it hears and %s for one that it speaks, plus text and history",
		backendapi.Dollars(p.In), backendapi.Dollars(p.Out))
}

// voiceChoices returns the voices, each with the models that can speak with it. The page's script disables the voices
// that the chosen model does not support.
func voiceChoices(all assistant.Catalogue) []choice {
	var voices []choice
	for _, voice := range all.Voices {
		var ids, names []string
		for _, m := range all.RealtimeModels {
			if slices.Contains(m.Voices, voice.ID) {
				ids, names = append(ids, m.ID), append(names, m.Name)
			}
		}
		one := choice{ID: voice.ID, Label: voice.Name, About: voice.Description}
		switch len(ids) {
		case len(all.RealtimeModels):
		case 0:
			one.With, one.About = "-", sentences(voice.Description, "No model speaks with it now.")
		default:
			one.With = strings.Join(ids, " ")
			one.About = sentences(voice.Description, "Goes with "+inWords(names)+" only.")
		}
		voices = append(voices, one)
	}
	return voices
}

// voiceNames returns the names of the voices that a model can speak with.
func voiceNames(all assistant.Catalogue, m assistant.Model) []string {
	var names []string
	for _, voice := range all.Voices {
		if slices.Contains(m.Voices, voice.ID) {
			names = append(names, voice.Name)
		}
	}
	return names
}

// assistantProblem returns the field to correct and the correction, in the page's terms.
func assistantProblem(all assistant.Catalogue, now map[string]string, invalid *assistant.InvalidError) (
	field, text string,
) {
	i := slices.IndexFunc(all.RealtimeModels, func(m assistant.Model) bool { return m.ID == now[grants.RealtimeModel] })
	j := slices.IndexFunc(all.Voices, func(v assistant.Voice) bool { return v.ID == now[grants.Voice] })
	switch {
	case invalid.Field != grants.RealtimeModel && invalid.Field != grants.Voice:
	case i < 0:
		return grants.RealtimeModel, "Choose a conversation model that is still offered."
	case j < 0:
		return grants.Voice, "Choose a voice."
	case !slices.Contains(all.RealtimeModels[i].Voices, all.Voices[j].ID):
		m := all.RealtimeModels[i]
		return grants.Voice, "The model " + m.Name + " does not speak with the voice " + all.Voices[j].Name +
			". Choose " + inWords(voiceNames(all, m)) + ", or another model."
	}
	return invalid.Field, settingNames[invalid.Field] + ": choose another one. " + sentence(invalid.Message)
}

// textModelChoices returns the models of the AI gateway. The first choice is the operator's default.
func textModelChoices(all assistant.Catalogue, chosen string) []choice {
	standard := choice{Label: "The default", About: "The operator's choice; currently none."}
	var choices []choice
	for _, m := range all.TextModels {
		if m.ID == all.DefaultText {
			standard.About = "The operator's choice; currently " + m.Name + "."
		}
		about := sentences(m.Description, "Costs "+tokenPriceText(&m.Price)+".")
		if m.Price == (assistant.TokenPrice{}) {
			about = sentences(m.Description, "Free.")
		}
		if m.Why != "" {
			about = "Not offered now: " + m.Why + "."
		}
		choices = append(choices, choice{ID: m.ID, Label: m.Name, About: about, Off: m.Why != "" && m.ID != chosen})
	}
	return append([]choice{standard}, choices...)
}

func tokenPriceText(p *assistant.TokenPrice) string {
	switch {
	case p == nil:
		return ""
	case *p == assistant.TokenPrice{}:
		return "free"
	}
	return backendapi.Dollars(p.In) + " for a million tokens that it reads and " + backendapi.Dollars(p.Out) +
		" for a million that it writes"
}

// selectChoice selects a choice, and adds it if the operator no longer offers it.
func selectChoice(all []choice, id string) []choice {
	i := slices.IndexFunc(all, func(c choice) bool { return c.ID == id })
	if i < 0 {
		return append(all, choice{ID: id, Label: printable(id), About: "Choose another: this one is no longer offered.",
			On: true})
	}
	all[i].On = true
	return all
}

// priceText returns a sentence with the price, or "" if the operator has set none.
func priceText(price *int64, costs string) string {
	switch {
	case price == nil:
		return ""
	case *price == 0:
		return "Free."
	}
	return fmt.Sprintf(costs, backendapi.Dollars(*price))
}
