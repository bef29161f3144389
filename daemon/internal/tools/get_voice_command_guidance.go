package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/guide"
)

type getVoiceCommandGuidance struct{}

type getVoiceCommandGuidanceArgs struct {
	Phrases []string `json:"phrases"`
}

type voiceAnswer struct {
	Rules     []string              `json:"rules"`
	WakeWords []string              `json:"wakeWords" jsonschema:"No phrase may contain one."`
	Problems  []guide.PhraseProblem `json:"problems"`
	Checked   int                   `json:"checked"`
	Next      []nextCall            `json:"nextCalls"`
	Summary   string                `json:"summary"`
}

func (t getVoiceCommandGuidance) definition() definition {
	return define(readOnly("getVoiceCommandGuidance", "Choose and check spoken phrases",
		answersOf[voiceAnswer](required("rules", "wakeWords", "problems", "checked", "summary"),
			on("problems.phrase", says("Empty: the list as a whole.")),
		),
	), t.run)
}

func (t getVoiceCommandGuidance) run(_ context.Context, c call, args getVoiceCommandGuidanceArgs) (any, error) {
	answer := voiceAnswer{
		Rules: []string{
			fmt.Sprintf("Two to four words, at most %d; at least %d letters. A verb and its object are "+
				"something that everybody says the same way.", guide.MaxPhraseWords, guide.MinPhraseLetters),
			"Phrases differ at their beginning and in their sound; none is the beginning of another.",
			"No wake word of an assistant, no digits or symbols: write what is spoken.",
			fmt.Sprintf("Announce the phrases of the present screen with %s (at most %d; people remember about %d).",
				glasses.TypePhrasesAnnounce, glasses.MaxPhrases, guide.ManyPhrases),
			"Listen with " + glasses.TypeTranscriptionStart + ", act on transcript events with final true, compare without " +
				"case and punctuation.",
			"Offer the same through input as well: speech fails in noise, during calls and without permission.",
			"Confirm on the display or with a sound; ask before anything that cannot be undone.",
		},
		WakeWords: guide.WakeWords(), Problems: guide.CheckPhrases(args.Phrases), Checked: len(args.Phrases),
		Next: []nextCall{
			suggest("injectTranscript", `{"text":"next page"}`, "say a phrase to the app in a session"),
			suggest("getCapabilityGuide", `{"capability":"transcription"}`, "how speech reaches the app"),
		},
	}
	if answer.Problems == nil {
		answer.Problems = []guide.PhraseProblem{}
	}
	switch {
	case answer.Checked == 0:
		answer.Summary = "No phrase may contain one of the wake words; pass phrases to have them checked."
	case len(answer.Problems) == 0:
		answer.Summary = fmt.Sprintf("%d phrases checked, without problems.", answer.Checked)
	default:
		answer.Summary = fmt.Sprintf("%d phrases checked, %d problems: %s", answer.Checked, len(answer.Problems),
			problemWords(answer.Problems[0]))
	}
	return answer, nil
}

func problemWords(p guide.PhraseProblem) string {
	if p.Phrase == "" {
		return p.Message + "."
	}
	return fmt.Sprintf("%q: %s.", clip(p.Phrase), p.Message)
}
