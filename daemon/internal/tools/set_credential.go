package tools

import (
	"context"
	"fmt"
	"regexp"

	"github.com/service-dev/service/daemon/internal/backend"
)

type setCredential struct {
	records
	browser Browser
}

// providerPattern matches provider IDs. It keeps other text, such as a key passed by mistake, out of URLs and logs.
var providerPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

type setCredentialArgs struct {
	projectArg
	Provider    string `json:"provider"`
	OpenBrowser *bool  `json:"openBrowser"`
}

type credentialLinkAnswer struct {
	Status        string `json:"status"`
	Project       string `json:"project"`
	Provider      string `json:"provider"`
	URL           string `json:"url" jsonschema:"For the user, who signs in there and pastes the value." format:"uri"`
	ExpiresAt     string `json:"expiresAt" format:"date-time"`
	BrowserOpened bool   `json:"browserOpened" jsonschema:"Whether a page was opened."`
	Summary       string `json:"summary"`
}

func (t setCredential) definition() definition {
	return define(Tool{
		Name: "setCredential", Title: "Let the user set a credential", NeedsAccount: true,
		OutputSchema: gatedAnswersOf[credentialLinkAnswer]([]string{"link"},
			recordErrors,
		),
	}, t.run,
		required("provider"),
		on("provider", says("An id from getCredentialStatus, e.g. openai.")),
		on("openBrowser", byDefault(true)),
	)
}

func (t setCredential) run(ctx context.Context, c call, args setCredentialArgs) (any, error) {
	if args.Provider == "" {
		return nil, missing("provider", "Call getCredentialStatus and pass one of its providers.")
	}
	if !providerPattern.MatchString(args.Provider) { // the value may be the secret, so it is not quoted
		return nil, invalid(`argument "provider" is no provider's id`,
			"Pass a provider of getCredentialStatus, e.g. openai; never pass the credential itself: the user pastes it "+
				"on the page.")
	}
	about := recordCall{
		recordArgs: recordArgs{args.projectArg, linkArg{args.OpenBrowser}},
		missing: "Call getCredentialStatus for the known providers, or listProjects if it does not find the " +
			"project either.",
	}
	return t.records.run(ctx, c, about, func(ctx context.Context, target backend.Target, project string) (any, error) {
		link, err := t.source.CredentialLink(ctx, target, project, args.Provider)
		if err != nil {
			return nil, err
		}
		opened := false
		if args.OpenBrowser == nil || *args.OpenBrowser {
			opened, _ = t.browser.Open(ctx, c.who, link.URL)
		}
		return credentialLinkAnswer{
			Status: "link", Project: project, Provider: link.Provider, URL: link.URL, ExpiresAt: link.ExpiresAt,
			BrowserOpened: opened,
			Summary: fmt.Sprintf("Give the user %s: they sign in there and paste the credential of %s for %s, once, "+
				"until %s. Never ask them for the value; getCredentialStatus shows when it is set.",
				link.URL, link.Provider, project, link.ExpiresAt),
		}, nil
	})
}
