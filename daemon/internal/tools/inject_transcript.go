package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/service-dev/service/proto/glasses"
)

type injectTranscript struct{ injector }

type injectTranscriptArgs struct {
	sessionArg
	Text       string  `json:"text"`
	Final      *bool   `json:"final" jsonschema:"false: may still change."`
	Language   string  `json:"language" jsonschema:"E.g. en."`
	Confidence integer `json:"confidence" jsonschema:"Percent."`
}

func (t injectTranscript) definition() definition {
	return define(injectTool("injectTranscript", "Say something to the glasses"), t.run,
		required("text"),
		on("text", says(fmt.Sprintf("1 to %d characters.", glasses.MaxSay))),
		on("final", byDefault(true)),
	)
}

func (t injectTranscript) run(ctx context.Context, c call, args injectTranscriptArgs) (any, error) {
	if args.Confidence < 0 || args.Confidence > 100 {
		return nil, invalid("confidence goes from 0 to 100", "change the argument that the message names")
	}
	said := glasses.Transcript{Text: args.Text, Final: args.Final == nil || *args.Final, Language: args.Language,
		Confidence: int(args.Confidence)}
	if err := checkControl(glasses.SimTranscript, said); err != nil {
		return nil, err
	}
	injected := injection{typ: glasses.SimTranscript, payload: said, done: fmt.Sprintf("said %q", clip(args.Text))}
	return t.inject(ctx, c, args.SessionID, []injection{injected},
		suggest("waitForEvent", `{"kind":"request"}`, "wait for what the app does about it"),
		suggest("getDisplayState", `{}`, "see what the wearer sees now"))
}

// checkControl returns the protocol's error for a payload, before anything is sent.
func checkControl(typ string, payload any) error {
	data, err := json.Marshal(payload)
	if err == nil {
		_, err = glasses.ParseControl(typ, data)
	}
	if err != nil {
		return invalid(err.Error(), "change the argument that the message names")
	}
	return nil
}
