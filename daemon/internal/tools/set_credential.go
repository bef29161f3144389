package tools

import (
	"context"
	"fmt"
	"regexp"

	"github.com/service-dev/service/daemon/internal/backend"
)

const setCredentialText = `Gives a page of the dashboard on which the person pastes the credential of an outside provider (such as an AI provider's API key) for a project. ` +
	`The value never passes you: never ask for it, never accept it in the conversation, never write it to a file; if the person shows it to you, tell them to revoke it at the provider and to paste a new one on the page. ` +
	`The page works once, for the signed-in owner, until expiresAt, and is opened in the person's browser; give them url as well. Afterwards getCredentialStatus tells whether it is set. ` +
	`Use it when a credential is missing or was refused. Not for the project's own key (generateConnectionModule) nor for models and voices (setAssistantConfig). ` +
	`Needs the grant credentials at Read + Write, else it answers permission_denied; and a linked account: without one it answers status "auth_required", a normal step; see createSimulatorSession.`

type credentialLinker interface {
	// CredentialLink makes a page on which the person sets the credential.
	CredentialLink(ctx context.Context, target backend.Target, project, provider string) (backend.CredentialLink, error)
}

type setCredential struct {
	records
	source  credentialLinker
	browser Browser
}

// providerPattern keeps what cannot be an id, such as a key that was passed by mistake, out of URLs and logs.
var providerPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

type setCredentialArgs struct {
	Project     string `json:"project"`
	Provider    string `json:"provider"`
	OpenBrowser *bool  `json:"openBrowser"`
}

type credentialLinkAnswer struct {
	Status        string `json:"status"`
	Project       string `json:"project"`
	Provider      string `json:"provider"`
	URL           string `json:"url"`
	ExpiresAt     string `json:"expiresAt"`
	BrowserOpened bool   `json:"browserOpened"`
	Summary       string `json:"summary"`
}

func (t setCredential) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "setCredential", Title: "Let the person set a credential", Description: setCredentialText, NeedsAccount: true,
		InputSchema: inputSchema(projectArgument+`,
			"provider":{"type":"string","description":"A provider of getCredentialStatus, e.g. openai. Never the credential itself."},
			"openBrowser":{"type":"boolean","default":true,"description":"Whether to open the page in the person's browser."}`, `"provider"`),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","link"]},
			"project":{"type":"string"},"provider":{"type":"string"},
			"url":{"type":"string","format":"uri","description":"Show it to the person, who signs in there and pastes the value."},
			"expiresAt":{"type":"string","format":"date-time"},`+summaryProperty+","+recordErrorProperties, `"status","summary"`, true),
	}}
}

func (t setCredential) run(ctx context.Context, c call) (any, error) {
	var args setCredentialArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if args.Provider == "" {
		return nil, &Error{Code: CodeInvalidArguments, Message: `argument "provider" is missing`, FixHint: "call getCredentialStatus and pass the provider of one"}
	}
	if !providerPattern.MatchString(args.Provider) { // what it is is not repeated: it may be the secret
		return nil, &Error{Code: CodeInvalidArguments, Message: `argument "provider" is no provider's id`,
			FixHint: "pass a provider of getCredentialStatus, e.g. openai; never pass the credential itself: the person pastes it on the page"}
	}
	about := recordCall{
		project: args.Project, openBrowser: args.OpenBrowser,
		missing: "call getCredentialStatus for the providers that there are, or listProjects when it finds no such project either",
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
			Status: "link", Project: project, Provider: link.Provider, URL: link.URL, ExpiresAt: link.ExpiresAt, BrowserOpened: opened,
			Summary: fmt.Sprintf("Give the person %s: they sign in there and paste the credential of %s for %s, once, until %s. Never ask them for the value; getCredentialStatus tells when it is set.",
				link.URL, link.Provider, project, link.ExpiresAt),
		}, nil
	})
}
