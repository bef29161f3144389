package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/guide"
)

const getVoiceCommandGuidanceText = `Tells how to choose phrases that people say to an app on glasses: length, distinctness, how to listen and announce, and the wake ` +
	`words of assistants that swallow a phrase before the app hears it. Pass the app's phrases to have each checked, with what is wrong and how to mend it. ` +
	`Use it before you write phrases down and when one is not recognised. It needs no account and changes nothing. ` +
	`How transcripts arrive stands in getCapabilityGuide (transcription); injectTranscript says a phrase to a session; ` +
	`validateIntegration finds the phrases in an app's files by itself.`

type getVoiceCommandGuidance struct{}

type getVoiceCommandGuidanceArgs struct {
	Phrases []string `json:"phrases"`
}

type voiceAnswer struct {
	Rules     []string              `json:"rules"`
	WakeWords []string              `json:"wakeWords"`
	Problems  []guide.PhraseProblem `json:"problems"`
	Checked   int                   `json:"checked"`
	Next      []nextCall            `json:"nextCalls"`
	Summary   string                `json:"summary"`
}

func (t getVoiceCommandGuidance) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getVoiceCommandGuidance", Title: "Choose and check spoken phrases", Description: getVoiceCommandGuidanceText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(`"phrases":{"type":"array","items":{"type":"string"},"description":"Phrases to check. Left out: only the rules."}`, ""),
		OutputSchema: outputSchema(`
			"rules":{"type":"array","items":{"type":"string"}},
			"wakeWords":{"type":"array","items":{"type":"string"},"description":"No phrase may hold one."},
			"problems":{"type":"array","items":{"type":"object","properties":{
				"phrase":{"type":"string","description":"Empty: the list as a whole."},"code":{"type":"string"},"message":{"type":"string"},"fix":{"type":"string"}}}},
			"checked":{"type":"integer"},`+nextProperty+`,`+summaryProperty, `"rules","wakeWords","problems","checked","summary"`, false),
	}}
}

func (t getVoiceCommandGuidance) run(_ context.Context, c call) (any, error) {
	var args getVoiceCommandGuidanceArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	answer := voiceAnswer{
		Rules: []string{
			fmt.Sprintf("Two to four words, at most %d; at least %d letters. A verb and its object are said the same way by everybody.", guide.MaxPhraseWords, guide.MinPhraseLetters),
			"Phrases differ at their beginning and in their sound; none is the beginning of another.",
			"No wake word of an assistant, no digits or symbols: write what is spoken.",
			fmt.Sprintf("Announce the phrases of the present screen with %s (at most %d; people remember about %d).", glasses.TypePhrasesAnnounce, glasses.MaxPhrases, guide.ManyPhrases),
			"Listen with " + glasses.TypeTranscriptionStart + ", act on transcript events with final true, compare without case and punctuation.",
			"Offer the same by input as well: speech fails in noise, during calls and without permission.",
			"Confirm by what is shown, or by a sound; ask before anything that cannot be undone.",
		},
		WakeWords: guide.WakeWords(), Problems: guide.CheckPhrases(args.Phrases), Checked: len(args.Phrases),
		Next: []nextCall{
			call1("injectTranscript", `{"text":"next page"}`, "say a phrase to the app in a session"),
			call1("getCapabilityGuide", `{"capability":"transcription"}`, "how speech reaches the app"),
		},
	}
	if answer.Problems == nil {
		answer.Problems = []guide.PhraseProblem{}
	}
	switch {
	case answer.Checked == 0:
		answer.Summary = "No phrase may hold one of the wake words; pass phrases to have them checked."
	case len(answer.Problems) == 0:
		answer.Summary = fmt.Sprintf("%d phrases checked, all are good.", answer.Checked)
	default:
		answer.Summary = fmt.Sprintf("%d phrases checked, %d problems: %s", answer.Checked, len(answer.Problems), problemWords(answer.Problems[0]))
	}
	return answer, nil
}

func problemWords(p guide.PhraseProblem) string {
	if p.Phrase == "" {
		return p.Message + "."
	}
	return fmt.Sprintf("%q: %s.", clip(p.Phrase), p.Message)
}
