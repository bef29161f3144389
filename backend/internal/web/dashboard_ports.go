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
	"github.com/service-dev/service/backend/internal/sessions"
)

// Dashboard contains the services for the pages below /account. Every field except LocalServers is required.
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
	Sessions    LiveSessions
	// LocalServers is nil if users cannot add any.
	LocalServers LocalServers
}

func (d *Dashboard) complete() bool {
	return d.Projects != nil && d.Keys != nil && d.Grants != nil && d.Audit != nil && d.Assistant != nil &&
		d.Credentials != nil && d.Pages != nil && d.Links != nil && d.Credit != nil && d.Models != nil &&
		d.KeySources != nil && d.Sessions != nil
}

// Projects manages an account's apps. It returns the errors of package projects.
type Projects interface {
	List(ctx context.Context, account string) ([]projects.Project, error)
	// Get also accepts the ID of a project that was merged into another project. The result's ID is never an alias.
	Get(ctx context.Context, account, id string) (projects.Project, error)
	Update(ctx context.Context, account, id, displayName string, platforms []string, by audit.Actor) (
		projects.Project, error)
	Merge(ctx context.Context, account, from, into string, by audit.Actor) error
	Delete(ctx context.Context, account, id string, by audit.Actor) error
}

// ProjectKeys manages the keys of a project. It returns the errors of package projects.
type ProjectKeys interface {
	Keys(ctx context.Context, account, id string) ([]projects.KeyInfo, error)
	MintKey(ctx context.Context, account, id, name string, by audit.Actor) (projects.Key, error)
	RotateKey(ctx context.Context, account, id, keyID string, by audit.Actor) (projects.Key, error)
	RevokeKey(ctx context.Context, account, id, keyID string, by audit.Actor) error
}

// AccessGrants defines what agents may do with a project. It returns the errors of package grants.
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

// LiveSessions lists and closes an account's open sessions. It returns the errors of package sessions.
type LiveSessions interface {
	// Page returns open sessions, and the position at which the following page begins.
	Page(ctx context.Context, account string, l sessions.Listing) (list []sessions.Session, next string, err error)
	Attached(id string) sessions.Live
	// Shown returns the content shown by the glasses of an open session.
	Shown(ctx context.Context, account, id string) (sessions.Session, sessions.Memory, error)
	Close(ctx context.Context, account, id string) (sessions.Session, error)
	Milestones(ctx context.Context, account string) (sessions.Milestones, error)
}

// AuditLog lists reads and changes. It returns the errors of package audit.
type AuditLog interface {
	List(ctx context.Context, account string, f audit.Filter) ([]audit.Entry, error)
	Get(ctx context.Context, account, id string) (audit.Entry, error)
}

// Assistants manages the settings of voice assistants. It returns the errors of package assistant.
type Assistants interface {
	Get(ctx context.Context, account, project string) (assistant.Config, error)
	Change(ctx context.Context, account, project string, change assistant.Change, by audit.Actor) (
		before, after assistant.Config, err error)
	Undo(ctx context.Context, account string, e audit.Entry, by audit.Actor) error
	Choices(ctx context.Context, accountID, project string) (assistant.Catalogue, error)
	// Cost returns the price of a minute of conversation in micro-dollars, or nil if it is unknown.
	Cost(c assistant.Config) *int64
}

// StoredCredentials manages a project's own keys for AI providers. It returns the errors of package credentials.
type StoredCredentials interface {
	// Configured reports whether the backend can store credentials.
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

// ConnectionPages manages the pages where an app's users connect their glasses. It returns the errors of package
// connpage.
type ConnectionPages interface {
	// IsChanged reports whether the page has ever been changed. Unlike Get, it stores nothing.
	IsChanged(ctx context.Context, account, project string) (bool, error)
	Get(ctx context.Context, account, project string) (connpage.Page, error)
	Change(ctx context.Context, account, project string, change connpage.Change, by audit.Actor) (
		before, after connpage.Page, err error)
	Undo(ctx context.Context, account string, e audit.Entry, by audit.Actor) error
	// File returns the page as a single file to ship with an app.
	File(p connpage.Page) (name string, html []byte, err error)
}

// AgentLinks manages the links between an account and its agents. It returns the errors of package link.
type AgentLinks interface {
	Links(ctx context.Context, account string) ([]link.Link, error)
	RevokeLink(ctx context.Context, account, linkID string, by audit.Actor) error
	RevokeAll(ctx context.Context, account string, by audit.Actor) (int, error)
}

// Credit manages the prepaid credit of accounts and their spending caps. It returns the errors of package credit.
type Credit interface {
	// Account returns the account's balance, and opens it on first use.
	Account(ctx context.Context, accountID string) (credit.Account, error)
	// Transfers returns transfers, newest first.
	Transfers(ctx context.Context, accountID string, skip, limit int) ([]credit.Transfer, error)
	Project(ctx context.Context, accountID, project string) (credit.Project, error)
	// Notices returns notices about caps and a balance that are almost used up. If project is empty, it returns the
	// account's notices.
	Notices(ctx context.Context, accountID, project string) ([]credit.Notice, error)
	CapChanges
	CallCounts
}

// CapChanges changes spending caps.
type CapChanges interface {
	// SetCaps sets the caps of the account if project is empty.
	SetCaps(ctx context.Context, accountID, project string, c credit.Caps, by audit.Actor) error
	UndoCaps(ctx context.Context, accountID string, e audit.Entry, by audit.Actor) error
}

// CallCounts counts model calls.
type CallCounts interface {
	Usage(ctx context.Context, q credit.UsageQuery, row func(credit.UsageRow) error) error
	Refusals(ctx context.Context, q credit.UsageQuery) ([]credit.Refusal, error)
}

// Models lists the models that a project's app can call.
type Models interface {
	Available(ctx context.Context, who gateway.Caller) ([]gateway.Availability, error)
}

// KeySources reads and changes the way in which a project pays for its calls. It returns the errors of package gateway.
type KeySources interface {
	KeySource(ctx context.Context, account, project string) (string, error)
	SetKeySource(ctx context.Context, account, project, source string, by audit.Actor) error
}

// LocalServers manages the model servers that project owners added. It returns the errors of package gateway.
type LocalServers interface {
	List(ctx context.Context, account, project string) ([]gateway.LocalServer, error)
	Add(ctx context.Context, account, project, id, address, key string, by audit.Actor) (gateway.LocalServer, error)
	Check(ctx context.Context, account, project, id string) (gateway.LocalServer, error)
	Remove(ctx context.Context, account, project, id string, by audit.Actor) error
}
