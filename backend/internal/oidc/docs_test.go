package oidc

import (
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
)

// TestDocumentedProvidersParse parses the provider file that the documentation shows.
func TestDocumentedProvidersParse(t *testing.T) {
	page, ok := docs.Find("operating")
	if !ok {
		t.Fatal("the documentation has no page named operating")
	}
	_, text, ok := strings.Cut(page.Markdown, "```yaml\n# /etc/service/providers.yaml\n")
	if !ok {
		t.Fatal("the page shows no provider file")
	}
	text, _, _ = strings.Cut(text, "```")
	got, err := parse([]byte(text))
	if err != nil || len(got) != 1 || got[0].ID != "acme" || got[0].ClientSecretFile == "" {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.Contains(page.Markdown, "/signin/oidc/acme/callback") {
		t.Error("the page does not mention the provider's redirect URL")
	}
}
