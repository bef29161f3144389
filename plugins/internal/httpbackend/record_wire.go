package httpbackend

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"time"

	"github.com/service-dev/service/proto/backendapi"
)

// moment checks a timestamp that must be there.
func moment(name, value string) error {
	if _, err := time.Parse(time.RFC3339Nano, value); err != nil {
		return errors.New(name + " is not a timestamp")
	}
	return nil
}

type projectList struct{ backendapi.ProjectList }

func (l *projectList) check() error {
	if l.Projects == nil {
		return errIncomplete
	}
	for _, p := range l.Projects {
		if p.Project == "" {
			return errIncomplete
		}
		if err := moment("createdAt", p.CreatedAt); err != nil {
			return err
		}
	}
	return nil
}

type assistantConfig struct{ backendapi.AssistantConfig }

func (c *assistantConfig) check() error {
	if c.Project == "" || c.Access == nil || c.Choices.RealtimeModels == nil || c.Choices.MemoryModels == nil || c.Choices.Voices == nil {
		return errIncomplete
	}
	if c.Version < 0 {
		return errors.New("version is negative")
	}
	return nil
}

type credentialList struct{ backendapi.CredentialList }

func (l *credentialList) check() error {
	if l.Project == "" || l.Credentials == nil {
		return errIncomplete
	}
	for _, c := range l.Credentials {
		if c.Provider == "" {
			return errIncomplete
		}
	}
	return nil
}

type credentialLink struct{ backendapi.CredentialLink }

func (l *credentialLink) check() error {
	if l.Provider == "" || l.URL == "" {
		return errIncomplete
	}
	if u, err := url.Parse(l.URL); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("url is not an absolute http or https URL") // it is opened in a browser
	}
	return moment("expiresAt", l.ExpiresAt)
}

type analyticsReport struct{ backendapi.AnalyticsReport }

func (r *analyticsReport) check() error {
	if r.Project == "" || r.Interval == "" || r.Series == nil {
		return errIncomplete
	}
	if err := moment("from", r.From); err != nil {
		return err
	}
	return moment("to", r.To)
}

type connectionPage struct{ backendapi.ConnectionPage }

func (p *connectionPage) check() error {
	if p.Project == "" || p.Theme == "" || p.PageURL == "" {
		return errIncomplete
	}
	if p.Version < 0 {
		return errors.New("version is negative")
	}
	return nil
}

type connectionPageFile struct{ backendapi.ConnectionPageFile }

func (f *connectionPageFile) check() error {
	if f.Name == "" || f.HTML == "" {
		return errIncomplete
	}
	if sum := sha256.Sum256([]byte(f.HTML)); f.SHA256 != hex.EncodeToString(sum[:]) {
		return errors.New("html is not what its sha256 says")
	}
	return nil
}
