package web

import (
	"context"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/projects"
)

// Dashboard serves the pages below /account; every field but LocalServers is required.
type Dashboard struct {
	Projects    Projects
	Keys        ProjectKeys
	Grants      AccessGrants
	Audit       AuditLog
	Assistant   Assistants
	Credentials StoredCredentials
	Pages       ConnectionPages
	Links       AgentLinks
	Credit      Credit
	Models      Models
	KeySources  KeySources
	// LocalServers is nil where people cannot add any.
	LocalServers LocalServers
}

func (d *Dashboard) complete() bool {
	return d.Projects != nil && d.Keys != nil && d.Grants != nil && d.Audit != nil && d.Assistant != nil &&
		d.Credentials != nil && d.Pages != nil && d.Links != nil && d.Credit != nil && d.Models != nil &&
		d.KeySources != nil
}

// Projects are an account's apps. Errors are those of package projects.
type Projects interface {
	List(ctx context.Context, account string) ([]projects.Project, error)
	// Get also accepts the id of a project that was merged into another one; the result's ID is never an alias.
	Get(ctx context.Context, account, id string) (projects.Project, error)
	Update(ctx context.Context, account, id, displayName string, platforms []string, by audit.Actor) (
		projects.Project, error)
	Merge(ctx context.Context, account, from, into string, by audit.Actor) error
	Delete(ctx context.Context, account, id string, by audit.Actor) error
}

// ProjectKeys are the keys of a project. Errors are those of package projects.
type ProjectKeys interface {
	Keys(ctx context.Context, account, id string) ([]projects.KeyInfo, error)
	MintKey(ctx context.Context, account, id, name string, by audit.Actor) (projects.Key, error)
	RotateKey(ctx context.Context, account, id, keyID string, by audit.Actor) (projects.Key, error)
	RevokeKey(ctx context.Context, account, id, keyID string, by audit.Actor) error
}

// AccessGrants define what agents may do with a project. Errors are those of package grants.
type AccessGrants interface {
	Of(ctx context.Context, account, project string) (grants.Grants, error)
	Set(ctx context.Context, account, project string, g grants.Grants, by audit.Actor) error
}

// AuditLog lists what was read and changed. Errors are those of package audit.
type AuditLog interface {
	List(ctx context.Context, account string, f audit.Filter) ([]audit.Entry, error)
	Get(ctx context.Context, account, id string) (audit.Entry, error)
}

// Assistants are the settings of voice assistants. Errors are those of package assistant.
type Assistants interface {
	Get(ctx context.Context, account, project string) (assistant.Config, error)
	Change(ctx context.Context, account, project string, change assistant.Change, by audit.Actor) (
		before, after assistant.Config, err error)
	Undo(ctx context.Context, account string, e audit.Entry, by audit.Actor) error
	Choices(ctx context.Context, accountID, project string) (assistant.Catalogue, error)
	// Cost returns micro-dollars for a minute of conversation, or nil if unknown.
	Cost(c assistant.Config) *int64
}

// StoredCredentials are a project's own keys of AI providers. Errors are those of package credentials.
type StoredCredentials interface {
	// Configured reports whether credentials can be stored at all.
	Configured() bool
	Remove(ctx context.Context, account, project, provider string, by audit.Actor) error
	CredentialTester
}

// CredentialTester lists, sets and tests the keys of a project.
type CredentialTester interface {
	Status(ctx context.Context, account, project string) ([]credentials.Credential, error)
	Set(ctx context.Context, account, project, provider, value, linkID string, by audit.Actor) error
	Test(ctx context.Context, account, project, provider string, by audit.Actor) (result string, err error)
}

// ConnectionPages are the pages on which an app's users connect glasses. Errors are those of package connpage.
type ConnectionPages interface {
	Get(ctx context.Context, account, project string) (connpage.Page, error)
	Change(ctx context.Context, account, project string, change connpage.Change, by audit.Actor) (
		before, after connpage.Page, err error)
	Undo(ctx context.Context, account string, e audit.Entry, by audit.Actor) error
	// File returns the page as one file to ship with an app.
	File(p connpage.Page) (name string, html []byte, err error)
}

// AgentLinks are the links of an account to its agents. Errors are those of package link.
type AgentLinks interface {
	Links(ctx context.Context, account string) ([]link.Link, error)
	RevokeLink(ctx context.Context, account, linkID string, by audit.Actor) error
	RevokeAll(ctx context.Context, account string, by audit.Actor) (int, error)
}

// Credit is the prepaid credit of accounts, with the caps of its spending. Errors are package credit's.
type Credit interface {
	// Account opens the account's balance at its first look.
	Account(ctx context.Context, accountID string) (credit.Account, error)
	// Transfers are the newest first.
	Transfers(ctx context.Context, accountID string, skip, limit int) ([]credit.Transfer, error)
	Project(ctx context.Context, accountID, project string) (credit.Project, error)
	// Notices are about caps and a balance of which most is spent; without a project, those of the account.
	Notices(ctx context.Context, accountID, project string) ([]credit.Notice, error)
	CapChanges
	CallCounts
}

// CapChanges changes spending caps.
type CapChanges interface {
	// SetCaps sets those of the account if project is empty.
	SetCaps(ctx context.Context, accountID, project string, c credit.Caps, by audit.Actor) error
	UndoCaps(ctx context.Context, accountID string, e audit.Entry, by audit.Actor) error
}

// CallCounts are the counts of calls to models.
type CallCounts interface {
	Usage(ctx context.Context, q credit.UsageQuery, row func(credit.UsageRow) error) error
	Refusals(ctx context.Context, q credit.UsageQuery) ([]credit.Refusal, error)
}

// Models are those that a project's app can call.
type Models interface {
	Available(ctx context.Context, who gateway.Caller) ([]gateway.Availability, error)
}

// KeySources read and change who pays for the calls of projects. Errors are package gateway's.
type KeySources interface {
	KeySource(ctx context.Context, account, project string) (string, error)
	SetKeySource(ctx context.Context, account, project, source string, by audit.Actor) error
}

// LocalServers are the servers of models that the owners of projects added. Errors are package gateway's.
type LocalServers interface {
	List(ctx context.Context, account, project string) ([]gateway.LocalServer, error)
	Add(ctx context.Context, account, project, id, address, key string, by audit.Actor) (gateway.LocalServer, error)
	Check(ctx context.Context, account, project, id string) (gateway.LocalServer, error)
	Remove(ctx context.Context, account, project, id string, by audit.Actor) error
}
