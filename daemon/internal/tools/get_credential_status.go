package tools

import (
	"context"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
)

const getCredentialStatusText = `Tells which credentials of outside providers (such as an AI provider's API key) a project has: for each provider whether one is set, a masked hint of its end, ` +
	`when and by whom it was set, and how the last test went. The value itself is never told to anybody. ` +
	`Use it to find out whether a key is missing or was refused, and to learn the provider ids that setCredential takes. ` +
	`To set one use setCredential. It is not about the project's own key, which generateConnectionModule writes, nor about the account link (whoAmI). ` +
	`Answers permission_denied when the account's owner has set the grant to Off. Needs a linked account: without one it answers status "auth_required", a normal step; see createSimulatorSession.`

type credentialReader interface {
	Credentials(ctx context.Context, target backend.Target, project string) (backend.CredentialList, error)
}

type getCredentialStatus struct {
	records
	source credentialReader
}

type credentialsAnswer struct {
	Status string `json:"status"`
	backend.CredentialList
	Summary string `json:"summary"`
}

var credentialSchema = `{"type":"object","properties":{
	"provider":{"type":"string","description":"Pass it to setCredential."},
	"name":{"type":"string"},
	"set":{"type":"boolean"},
	"hint":` + optional(`"type":"string","description":"The end of the value."`) + `,
	"setAt":` + optionalTime + `,
	"setBy":` + optional(`"type":"string"`) + `,
	"testedAt":` + optionalTime + `,
	"testResult":` + optional(`"type":"string","enum":["ok","refused","unreachable"]`) + `}}`

func (t getCredentialStatus) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getCredentialStatus", Title: "Look at a project's credentials", Description: getCredentialStatusText, NeedsAccount: true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(projectArgument+","+recordLinkArgument, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","ok"]},
			"project":{"type":"string"},
			"credentials":{"type":"array","items":`+credentialSchema+`,"description":"Every provider that this backend knows."},`+
			summaryProperty+","+recordErrorProperties, `"status","summary"`, true),
	}}
}

func (t getCredentialStatus) run(ctx context.Context, c call) (any, error) {
	var args recordArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	return t.records.run(ctx, c, recordCall{project: args.Project, openBrowser: args.OpenBrowser}, func(ctx context.Context, target backend.Target, project string) (any, error) {
		list, err := t.source.Credentials(ctx, target, project)
		if err != nil {
			return nil, err
		}
		list.Credentials = orEmpty(list.Credentials)
		return credentialsAnswer{Status: "ok", CredentialList: list, Summary: describeCredentials(list)}, nil
	})
}

func describeCredentials(list backend.CredentialList) string {
	var set, missing []string
	for _, c := range list.Credentials {
		if !c.Set {
			missing = append(missing, c.Provider)
			continue
		}
		one := c.Provider
		if c.Hint != nil {
			one += " (" + *c.Hint + ")"
		}
		if c.TestResult != nil {
			one += ", last test: " + *c.TestResult
		}
		set = append(set, one)
	}
	words := "No credential of " + list.Project + " is set."
	if len(set) > 0 {
		words = "Set for " + list.Project + ": " + strings.Join(set, "; ") + "."
	}
	if len(missing) > 0 {
		words += " Not set: " + listed(missing, 10) + "; setCredential gives a page on which the person sets one."
	}
	return words
}
