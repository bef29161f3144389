package web

import (
	"context"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/projects"
)

// Dashboard is what the pages below /account are made of; every field is needed.
type Dashboard struct {
	Projects    Projects
	Keys        ProjectKeys
	Grants      AccessGrants
	Audit       AuditLog
	Assistant   Assistants
	Credentials KeptCredentials
	Pages       ConnectionPages
	Installs    Installs
}

func (d *Dashboard) complete() bool {
	return d.Projects != nil && d.Keys != nil && d.Grants != nil && d.Audit != nil && d.Assistant != nil &&
		d.Credentials != nil && d.Pages != nil && d.Installs != nil
}

// Projects are an account's apps. Errors are package projects'.
type Projects interface {
	List(ctx context.Context, account string) ([]projects.Project, error)
	// Get takes the id of a project that was merged away too; the result's ID is the one to go on with.
	Get(ctx context.Context, account, id string) (projects.Project, error)
	Update(ctx context.Context, account, id, displayName string, platforms []string, by audit.Actor) (projects.Project, error)
	Merge(ctx context.Context, account, from, into string, by audit.Actor) error
	Delete(ctx context.Context, account, id string, by audit.Actor) error
}

// ProjectKeys are the keys of a project. Errors are package projects'.
type ProjectKeys interface {
	Keys(ctx context.Context, account, id string) ([]projects.KeyInfo, error)
	MintKey(ctx context.Context, account, id, name string, by audit.Actor) (projects.Key, error)
	RotateKey(ctx context.Context, account, id, keyID string, by audit.Actor) (projects.Key, error)
	RevokeKey(ctx context.Context, account, id, keyID string, by audit.Actor) error
}

// AccessGrants are what agents may do with a project. Errors are package grants'.
type AccessGrants interface {
	Of(ctx context.Context, account, project string) (grants.Grants, error)
	Set(ctx context.Context, account, project string, g grants.Grants, by audit.Actor) error
}

// AuditLog is what was read and changed. Errors are package audit's.
type AuditLog interface {
	List(ctx context.Context, account string, f audit.Filter) ([]audit.Entry, error)
	Get(ctx context.Context, account, id string) (audit.Entry, error)
}

// Assistants are how voice assistants are set. Errors are package assistant's.
type Assistants interface {
	Get(ctx context.Context, account, project string) (assistant.Config, error)
	Change(ctx context.Context, account, project string, c assistant.Change, by audit.Actor) (before, after assistant.Config, err error)
	Undo(ctx context.Context, account string, e audit.Entry, by audit.Actor) error
	Choices() assistant.Catalogue
	// Cost is micro-dollars for a minute of conversation; nil: not known.
	Cost(c assistant.Config) *int64
}

// KeptCredentials are a project's own keys of AI providers. Errors are package credentials'.
type KeptCredentials interface {
	// Configured tells whether anything can be set at all.
	Configured() bool
	Status(ctx context.Context, account, project string) ([]credentials.Credential, error)
	Set(ctx context.Context, account, project, provider, value, linkID string, by audit.Actor) error
	Remove(ctx context.Context, account, project, provider string, by audit.Actor) error
	Test(ctx context.Context, account, project, provider string, by audit.Actor) (result string, err error)
}

// ConnectionPages are the pages on which an app's users connect glasses. Errors are package connpage's.
type ConnectionPages interface {
	Get(ctx context.Context, account, project string) (connpage.Page, error)
	Change(ctx context.Context, account, project string, c connpage.Change, by audit.Actor) (before, after connpage.Page, err error)
	Undo(ctx context.Context, account string, e audit.Entry, by audit.Actor) error
	// File is the page as one file to ship with an app.
	File(p connpage.Page) (name string, html []byte, err error)
}

// Installs are the agents' links of an account. Errors are package link's.
type Installs interface {
	Links(ctx context.Context, account string) ([]link.Link, error)
	RevokeLink(ctx context.Context, account, linkID string, by audit.Actor) error
	RevokeAll(ctx context.Context, account string, by audit.Actor) (int, error)
}
