package web

import (
	"context"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
)

// Dashboard contains the services for the pages below /account. Every field except LocalServers is required.
type Dashboard struct {
	Projects    *projects.Service
	Grants      AccessGrants
	Audit       *audit.Service
	Assistant   *assistant.Service
	Credentials *credentials.Service
	Pages       *connpage.Service
	Credit      *credit.Ledger
	Models      *gateway.Service
	KeySources  gateway.KeySources
	Sessions    *sessions.Service
	Installs    *attest.Service
	Memory      *memory.Service
	// LocalServers is nil if users cannot add any.
	LocalServers *gateway.LocalServers
}

func (d *Dashboard) complete() bool {
	return d.Projects != nil && d.Grants != nil && d.Audit != nil && d.Assistant != nil &&
		d.Credentials != nil && d.Pages != nil && d.Credit != nil && d.Models != nil &&
		d.KeySources.Store != nil && d.Sessions != nil && d.Installs != nil && d.Memory != nil
}

// AccessGrants is implemented by *grants.Service. It is an interface so that a test can lower a level between the
// moment when a page reads the levels and the moment when it changes them.
type AccessGrants interface {
	Of(ctx context.Context, account, project string) (grants.Grants, error)
	// All returns the account's default and the projects that have their own levels.
	All(ctx context.Context, account string) (usual grants.Grants, exceptions map[string]grants.Exception, err error)
	// Set, Follow and SetDefault return grants.ErrRaises if a level would rise, unless mayRaise is set.
	Set(ctx context.Context, account, project string, g grants.Grants, mayRaise bool, by audit.Actor) error
	// Follow deletes a project's own levels, or the levels of every project if project is empty.
	Follow(ctx context.Context, account, project string, mayRaise bool, by audit.Actor) error
	// SetDefault sets the account's default. If everywhere is set, it also replaces the grants of every project.
	SetDefault(ctx context.Context, account string, g grants.Grants, everywhere, mayRaise bool, by audit.Actor) error
}
