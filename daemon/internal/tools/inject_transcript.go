package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/strictjson"
)

type injectTranscript struct{ injector }

type injectTranscriptArgs struct {
	sessionArg
	glasses.Transcript
}

func (injectTranscriptArgs) rules() strictjson.Rules {
	return kindRules("transcript", `{"text":"add milk"}`)
}

func (t injectTranscript) definition() definition {
	return define(injectTool("injectTranscript", "Say something to the glasses"), t.run)
}

func (t injectTranscript) run(ctx context.Context, c call, args injectTranscriptArgs) (any, error) {
	said := args.Transcript
	if err := checkControl(glasses.SimTranscript, said); err != nil {
		return nil, err
	}
	injected := injection{typ: glasses.SimTranscript, payload: said, done: fmt.Sprintf("said %q", clip(said.Text))}
	return t.inject(ctx, c, args.SessionID, []injection{injected},
		suggest("waitForEvent", `{"kind":"request"}`, "wait for the app's reaction"),
		suggest("getDisplayState", `{}`, "see the wearer's view"))
}

// checkControl returns the protocol's error for a payload. Call it before sending any frame.
func checkControl(typ string, payload any) error {
	data, err := json.Marshal(payload)
	if err == nil {
		_, err = glasses.ParseControl(typ, data)
	}
	if err != nil {
		return invalid(err.Error(), "Change the argument named in the message.")
	}
	return nil
}
