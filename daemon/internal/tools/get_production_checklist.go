package tools

import (
	"context"
	"fmt"
	"slices"

	"github.com/service-dev/service/proto/glasses/guide"
)

const getProductionChecklistText = `Lists what must hold before people get an app for glasses: robustness (refusals, lost link, calls, heat, other models), privacy and ` +
	`secrets, the release build, tests, and how to prove each item with which tool. Pass platform and capabilities to leave out what does not concern the app. ` +
	`Use it at the end of the work, or to plan tests. It needs no account, changes nothing and does not look at the app: ` +
	`validateIntegration does that; getPermissions has the declarations.`

type getProductionChecklist struct{}

type getProductionChecklistArgs struct {
	Platform     string   `json:"platform"`
	Capabilities []string `json:"capabilities"`
}

// checkItem is one item of the checklist; prove is a call that shows whether it holds.
type checkItem struct {
	ID    string    `json:"id"`
	Area  string    `json:"area"`
	Must  string    `json:"must"`
	Why   string    `json:"why"`
	Prove *nextCall `json:"prove,omitempty"`
	needs []string
	on    string
}

type checklistAnswer struct {
	Items   []checkItem `json:"items"`
	Next    []nextCall  `json:"nextCalls"`
	Summary string      `json:"summary"`
}

func (t getProductionChecklist) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getProductionChecklist", Title: "See what must hold before release", Description: getProductionChecklistText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(`
			"platform":{"type":"string","enum":[`+quoted(guide.Platforms())+`],"description":"What the app is built for. Left out: all."},`+capabilitiesArgument, ""),
		OutputSchema: outputSchema(`
			"items":{"type":"array","items":{"type":"object","properties":{
				"id":{"type":"string"},"area":{"type":"string","enum":["robustness","privacy","release","tests"]},"must":{"type":"string"},"why":{"type":"string"},
				"prove":{"type":"object","properties":{"tool":{"type":"string"},"arguments":{"type":"object"},"why":{"type":"string"}},"description":"A call that shows it."}}}},`+
			nextProperty+`,`+summaryProperty, `"items","summary"`, false),
	}}
}

func (t getProductionChecklist) run(_ context.Context, c call) (any, error) {
	var args getProductionChecklistArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if args.Platform != "" && !slices.Contains(guide.Platforms(), args.Platform) {
		return nil, notOneOf("platform", guide.Platforms())
	}
	wanted, err := capabilitiesOf(args.Capabilities)
	if err != nil {
		return nil, err
	}
	answer := checklistAnswer{Items: []checkItem{}, Next: []nextCall{call1("validateIntegration", `{}`, "let the app's files be checked")}}
	for _, item := range checkItems() {
		concerns := len(item.needs) == 0 || slices.ContainsFunc(item.needs, func(id string) bool { return slices.Contains(wanted, id) })
		if concerns && (item.on == "" || args.Platform == "" || item.on == args.Platform) {
			answer.Items = append(answer.Items, item)
		}
	}
	answer.Summary = fmt.Sprintf("%d items; those with prove name the call that shows whether they hold.", len(answer.Items))
	return answer, nil
}

func prove(tool, arguments, why string) *nextCall {
	next := call1(tool, arguments, why)
	return &next
}

func checkItems() []checkItem {
	const robustness, privacy, release, tests = "robustness", "privacy", "release", "tests"
	asks := []string{guide.Camera, guide.Microphone, guide.Transcription}
	return []checkItem{
		{ID: "every_result", Area: robustness, Must: "every command's result is looked at, and each error code is handled", Why: "a command that failed unseen leaves the wearer waiting",
			Prove: prove("injectFault", `{"code":"platform_error","times":1}`, "the next command fails")},
		{ID: "lost_link", Area: robustness, Must: "the app lives through a lost link and shows its screen again", Why: "glasses go out of reach every day",
			Prove: prove("injectSensor", `{"state":{"link":"lost"}}`, "out of reach; then the same with connected")},
		{ID: "reattach", Area: robustness, Must: "after a lost connection it attaches again with since, waiting longer each time", Why: "services restart"},
		{ID: "taken_off", Area: robustness, Must: "nothing is shown or said while the glasses are not worn or folded, and the screen comes back afterwards", Why: "display and speech answer paused or hinge_closed",
			Prove: prove("injectSensor", `{"state":{"worn":false}}`, "taken off")},
		{ID: "heat", Area: robustness, Must: "the app goes on without camera and display when it gets too hot", Why: "streams heat glasses up", needs: []string{guide.Display, guide.Camera},
			Prove: prove("injectSensor", `{"state":{"thermal":"critical"}}`, "too hot")},
		{ID: "call", Area: robustness, Must: "a phone call interrupts speech and listening without harm", Why: "calls take microphone and speaker", needs: []string{guide.Speech, guide.Sound, guide.Microphone, guide.Transcription},
			Prove: prove("injectSensor", `{"state":{"call":true}}`, "a call comes in")},
		{ID: "other_models", Area: robustness, Must: "what matters can be read and reached on every model the app is offered for", Why: "panels go from 256x256 to 640x400, from one bit to full colour, and some models have none",
			Prove: prove("setDevice", `{"deviceModel":"even_g1"}`, "a small green panel with taps only")},
		{ID: "refused", Area: privacy, Must: "a refused permission is said once and worked around", Why: "asking again by itself is what people uninstall for", needs: asks,
			Prove: prove("injectSensor", `{"state":{"permissions":{"camera":"denied","microphone":"denied"}}}`, "refused")},
		{ID: "only_while_needed", Area: privacy, Must: "streams run only while they are needed, and the wearer can tell", Why: "people around did not agree to be recorded", needs: asks,
			Prove: prove("getDisplayState", `{}`, "state.running lists the streams that run")},
		{ID: "secrets", Area: privacy, Must: "no session secret, account token or project key is in the repository, in logs or in the app's bundle", Why: "they give access to an account",
			Prove: prove("validateIntegration", `{}`, "it looks for them")},
		{ID: "declared", Area: release, Must: "everything the platform asks for is declared, with a reason that people understand", Why: "stores and systems refuse otherwise",
			Prove: prove("validateIntegration", `{}`, "it compares the declarations")},
		{ID: "no_simulator", Area: release, Must: "a release build cannot attach to a simulator, whatever its environment says", Why: "a wrong setting must not reach people"},
		{ID: "no_cleartext", Area: release, Must: "cleartext traffic is allowed for this machine and in debug builds only", Why: "ws:// is for simulators", on: "android"},
		{ID: "local_networking", Area: release, Must: "NSAllowsLocalNetworking is in debug builds only", Why: "ws:// is for simulators", on: "ios"},
		{ID: "no_drift", Area: release, Must: "the generated connection module is unchanged and of the present protocol", Why: "edits in it are lost at the next generation",
			Prove: prove("validateIntegration", `{}`, "it compares the files' hashes")},
		{ID: "phrases", Area: tests, Must: "no phrase holds a wake word or sounds like another", Why: "it would never arrive", needs: []string{guide.Phrases, guide.Transcription},
			Prove: prove("getVoiceCommandGuidance", `{"phrases":["next page","read it out"]}`, "with the app's own phrases")},
		{ID: "scenario", Area: tests, Must: "the main path is a recording or scenario that passes in virtual time, in CI", Why: "`servicectl session run FILE --junit report.xml` needs no account, window or camera",
			Prove: prove("replaySession", `{"file":"glasses/main/scenario.json"}`, "verdict pass")},
		{ID: "seen", Area: tests, Must: "a person has seen it", Why: "a passing test does not mean that it is pleasant",
			Prove: prove("createSimulatorSession", `{}`, "a page for the person")},
	}
}
