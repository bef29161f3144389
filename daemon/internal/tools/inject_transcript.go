package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/service-dev/service/proto/glasses"
)

const injectTranscriptText = `Lets somebody say something to the glasses of a session: the app gets a transcript event, as if speech had been recognised. ` +
	`Use it to try voice commands. The app must have sent transcription.start before; else the answer is paused (wait for that with waitForEvent). ` +
	`For sound itself, as audio.chunk frames, use injectSensor with microphoneFile. To check phrases before, use getVoiceCommandGuidance. ` +
	`See what came of it with waitForEvent, expectDisplay or getDisplayState.`

type injectTranscript struct{ injector }

type injectTranscriptArgs struct {
	SessionID  string  `json:"sessionId"`
	Text       string  `json:"text"`
	Final      *bool   `json:"final"`
	Language   string  `json:"language"`
	Confidence integer `json:"confidence"`
}

func (t injectTranscript) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "injectTranscript", Title: "Say something to the glasses", Description: injectTranscriptText,
		InputSchema: inputSchema(sessionArgument+fmt.Sprintf(`,
			"text":{"type":"string","description":"What is said, 1 to %d characters."},
			"final":{"type":"boolean","default":true,"description":"false: it may still change."},
			"language":{"type":"string","description":"BCP 47, e.g. en."},
			"confidence":{"type":"integer","description":"Percent, 0 to 100; left out: nobody says."}`, glasses.MaxSay), `"text"`),
		OutputSchema: injectSchema(""),
	}}
}

func (t injectTranscript) run(ctx context.Context, c call) (any, error) {
	var args injectTranscriptArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if args.Confidence < 0 || args.Confidence > 100 {
		return nil, &Error{Code: CodeInvalidArguments, Message: "confidence goes from 0 to 100", FixHint: "change the argument that the message names"}
	}
	said := glasses.Transcript{Text: args.Text, Final: args.Final == nil || *args.Final, Language: args.Language, Confidence: int(args.Confidence)}
	if err := checkControl(glasses.SimTranscript, said); err != nil {
		return nil, err
	}
	return t.inject(ctx, c, args.SessionID, []injection{{typ: glasses.SimTranscript, payload: said, done: fmt.Sprintf("said %q", clip(args.Text))}},
		call1("waitForEvent", `{"kind":"request"}`, "wait for what the app does about it"),
		call1("getDisplayState", `{}`, "see what the wearer sees now"))
}

// checkControl refuses a payload before anything is done; the words are the protocol's.
func checkControl(typ string, payload any) error {
	data, err := json.Marshal(payload)
	if err == nil {
		_, err = glasses.ParseControl(typ, data)
	}
	if err != nil {
		return &Error{Code: CodeInvalidArguments, Message: err.Error(), FixHint: "change the argument that the message names"}
	}
	return nil
}
