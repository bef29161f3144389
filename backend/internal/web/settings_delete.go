package web

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/limit"
)

// exportBounds limits how many exports are made or downloaded at the same time.
var exportBounds = limit.Bounds{Running: 8, RunningEach: 1}

// downloadTime limits the time a browser may take to download its export.
const downloadTime = 10 * time.Minute

// export responds with the account's data as a file. The file is complete before its first byte is sent, so that a
// slow reader occupies a file instead of one of the few database connections. The file exists until the response
// ends.
func (w *Web) export(c *call) error {
	leave, err := w.exports.Enter(c.Context(), c.account.ID)
	if err != nil {
		return w.showExportBusy(c)
	}
	defer leave()
	file, err := openTempFile(w.TempDir)
	if err != nil {
		return fmt.Errorf("create temporary file for export: %w", err)
	}
	defer file.Close()
	if err := w.Accounts.Export(c.Context(), c.account.ID, file, audit.Person()); err != nil {
		return err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("measure export: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read export: %w", err)
	}
	connection := http.NewResponseController(c.rw)
	_ = connection.SetWriteDeadline(time.Now().Add(downloadTime)) // fails only for a response recorder in tests
	h := c.rw.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.FormatInt(size, 10)) // lets the browser detect a truncated file
	h.Set("Content-Disposition", `attachment; filename="account-`+w.Now().UTC().Format("2006-01-02")+`.json"`)
	if _, err := io.Copy(c.rw, file); err == nil {
		_ = connection.SetWriteDeadline(time.Time{}) // the connection serves further requests
	}
	return nil
}

func (w *Web) showExportBusy(c *call) error {
	c.rw.Header().Set("Retry-After", "60")
	return w.showMessage(c, http.StatusTooManyRequests, message{
		Title: "Another export is not finished",
		Text: []string{"Your account's data is being downloaded already, or the server makes exports for many " +
			"others. Wait until that download ends, then try again."},
		Href: "/account/settings", Label: "Back to the settings", Quiet: true,
	})
}

// deletePage is the data of the template "settings_delete".
type deletePage struct {
	formErrors
	Email       string
	Typed       string
	HasPassword bool
	Stale       bool // whether there is no password to enter and the sign-in is not recent
}

func (w *Web) deleteForm(c *call) error {
	p, err := w.newDeletePage(c)
	if err != nil {
		return err
	}
	return w.render(c, http.StatusOK, "settings_delete", p)
}

func (w *Web) newDeletePage(c *call) (p deletePage, err error) {
	owner, err := w.Accounts.ByID(c.Context(), c.account.ID)
	if err != nil {
		return p, err
	}
	p = deletePage{Email: owner.Email, HasPassword: owner.HasPassword()}
	p.Stale, err = w.isUnproven(c)
	return p, err
}

// deleteAccount deletes all data if the user typed the address and proved to own the account.
func (w *Web) deleteAccount(c *call) error {
	p, err := w.newDeletePage(c)
	if err != nil {
		return err
	}
	p.Typed = strings.TrimSpace(c.PostFormValue("email"))
	if account.FoldEmail(p.Typed) != account.FoldEmail(p.Email) {
		p.add("email", "This is not your account's e-mail address.")
	}
	if p.HasPassword && !p.Failed() {
		err := w.Accounts.CheckPassword(c.Context(), c.account.ID, passwordValue(c))
		if problem := passwordProblem(err); problem != "" {
			p.add("password", problem)
		} else if err != nil {
			return err
		}
	}
	if p.Failed() || p.Stale {
		return w.render(c, http.StatusUnprocessableEntity, "settings_delete", p)
	}
	if err := w.Accounts.Delete(c.Context(), c.account.ID, audit.Person()); err != nil {
		return err
	}
	w.newVisitor(c)
	w.forgetBrowser(c, p.Email)
	return c.redirect("/goodbye")
}

func (w *Web) goodbye(c *call) error {
	return w.showMessage(c, http.StatusOK, message{
		Title: "Your account is deleted",
		Text: []string{
			"The account and everything that belonged to it are gone, and you are signed out. " +
				"Your coding agents find out on their next call.",
			"Run servicectl logout to remove what is stored about the account on your own computer.",
		},
		Href: "/", Label: "Go to the start page", Quiet: true,
	})
}
