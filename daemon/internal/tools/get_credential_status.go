package tools

import (
	"strings"

	"github.com/service-dev/service/proto/backendapi"
)

type credentialsAnswer struct {
	Status string `json:"status"`
	backendapi.CredentialList
	Summary string `json:"summary"`
}

func getCredentialStatus(r records) definition {
	return readRecord(r, "getCredentialStatus", "Look at a project's credentials", Records.Credentials,
		func(list backendapi.CredentialList) credentialsAnswer {
			list.Credentials = orEmpty(list.Credentials)
			return credentialsAnswer{"ok", list, describeCredentials(list)}
		},
		on("credentials", says("Every provider that this backend knows.")),
		on("credentials.provider", says("Pass it to setCredential.")),
		on("credentials.hint", says("The last characters of the value.")),
		onEach(format("date-time"), "credentials.setAt", "credentials.testedAt"),
		on("credentials.testResult", oneOf("ok", "refused", "unreachable")),
		recordErrors,
	)
}

func describeCredentials(list backendapi.CredentialList) string {
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
		words += " Not set: " + listed(missing, 10) + "; setCredential returns a page on which the user sets one."
	}
	return words
}
