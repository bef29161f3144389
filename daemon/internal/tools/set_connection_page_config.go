package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
)

type setConnectionPageConfig struct {
	records
}

type setConnectionPageConfigArgs struct {
	recordArgs
	Version *integer `json:"version"`
	backendapi.ConnectionPageChange
	// Phrases is decoded later, so that unknown names in its items are also rejected.
	Phrases *[]rawOf[backendapi.ConnectionPagePhrase] `json:"phrases"`
	Toggles *[]rawOf[backendapi.ConnectionPageToggle] `json:"toggles"`
}

// changedPageAnswer contains only the settings that changed.
type changedPageAnswer struct {
	changed
	Project      string                             `json:"project"`
	Version      int64                              `json:"version"`
	Title        *string                            `json:"title,omitempty"`
	Description  *string                            `json:"description,omitempty"`
	Theme        *string                            `json:"theme,omitempty"`
	Accent       *string                            `json:"accent,omitempty"`
	Capabilities *[]string                          `json:"capabilities,omitempty"`
	Phrases      *[]backendapi.ConnectionPagePhrase `json:"phrases,omitempty"`
	Toggles      *[]backendapi.ConnectionPageToggle `json:"toggles,omitempty"`
	SupportURL   *string                            `json:"supportUrl,omitempty"`
	PrivacyURL   *string                            `json:"privacyUrl,omitempty"`
	PageURL      string                             `json:"pageUrl"`
	Summary      string                             `json:"summary"`
}

func (t setConnectionPageConfig) definition() definition {
	return define(recordChanger[changedPageAnswer]("setConnectionPageConfig", "Change the connection page",
		pageSettings, pageAddress, on("version", notNegative, says("Pass it to the next change.")),
		alsoErrors("currentVersion")), t.run,
		required("version"),
		on("version", notNegative),
		on("title", upTo(80)),
		on("description", upTo(400)),
		on("theme", oneOf(pageThemes...)),
		on("accent", says("#rrggbb.")),
		on("supportUrl", says("https; empty: none.")),
		on("phrases", maxItems, mustHave("phrase")),
		on("toggles", maxItems, mustHave("id", "label")),
	)
}

func (t setConnectionPageConfig) run(ctx context.Context, c call, args setConnectionPageConfigArgs) (any, error) {
	to := args.ConnectionPageChange
	var err error
	if to.Phrases, err = decodeItems("phrases", args.Phrases); err != nil {
		return nil, err
	}
	if to.Toggles, err = decodeItems("toggles", args.Toggles); err != nil {
		return nil, err
	}
	change, err := newChange(args.recordArgs, "getConnectionPageConfig", args.Version, to)
	if err != nil {
		return nil, err
	}
	to.Version = change.version
	apply := func(ctx context.Context, target backend.Target, project string) (backendapi.ConnectionPage, error) {
		return t.source.ChangeConnectionPage(ctx, target, project, to)
	}
	return onRecord(ctx, t.records, c, change.recordCall, apply, func(after backendapi.ConnectionPage) any {
		after = tidyPage(after)
		outcome, words := change.outcome(after.Version, after.Changed)
		answer := changedPageAnswer{changed: outcome, Project: after.Project, Version: after.Version,
			PageURL: after.PageURL, Summary: words + "The user can open it at " + after.PageURL + "."}
		copyFields(&answer, after, outcome.Fields)
		return answer
	})
}

// decodeItems decodes a list. Like decode, it rejects unknown names in items.
func decodeItems[T any](name string, raw *[]rawOf[T]) (*[]T, error) {
	if raw == nil {
		return nil, nil
	}
	list := make([]T, len(*raw))
	for i, one := range *raw {
		if err := decodeInner(fmt.Sprintf("%s[%d]", name, i), one.RawMessage, &list[i]); err != nil {
			return nil, err
		}
	}
	return &list, nil
}
