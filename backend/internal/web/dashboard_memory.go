package web

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/memory"
)

// memoryForm is the data about what is remembered for the template "dashboard_assistant".
type memoryForm struct {
	Off      string // why apps cannot remember, or ""
	Profiles string // the number of profiles, or ""
	Oldest   shownTime
	List     []memoryRow
	More     string // how many profiles List leaves out, or ""
	Days     string // as stored or entered
}

type memoryRow struct {
	ID                        string
	Created, Updated, Expires shownTime
}

// memoryForm returns the data of the form. days are the days as entered, or "".
func (w *Web) memoryForm(c *call, days string) (form memoryForm, err error) {
	sum, err := w.Dashboard.Memory.Summary(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return form, err
	}
	list, err := w.Dashboard.Memory.List(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return form, err
	}
	form.Oldest, form.Days = showTime(sum.Oldest), days
	if days == "" {
		form.Days = strconv.Itoa(sum.Days)
	}
	if !w.Dashboard.Memory.Configured() {
		form.Off = "This server has no key for encrypting notes, so that apps cannot remember."
	}
	switch {
	case sum.Profiles == 1:
		form.Profiles = "Something is remembered about 1 user"
	case sum.Profiles > 1:
		form.Profiles = "Something is remembered about " + grouped(int64(sum.Profiles)) + " users"
	}
	for _, e := range list {
		form.List = append(form.List, memoryRow{e.ID, showTime(e.CreatedAt), showTime(e.UpdatedAt), showTime(e.ExpiresAt)})
	}
	if more := sum.Profiles - len(list); more > 0 {
		form.More = "The list ends after the users of the latest conversations; " + grouped(int64(more)) + " more are stored."
	}
	return form, nil
}

// changeMemory sets the days, erases one profile, or erases all.
func (w *Web) changeMemory(c *call) error {
	memories, path := w.Dashboard.Memory, projectPath(c.project.ID)+"/assistant"
	switch c.PostFormValue("act") {
	case "days":
		return w.changeMemoryDays(c, path)
	case "erase":
		err := memories.EraseEntry(c.Context(), c.account.ID, c.project.ID, c.PostFormValue("user"), audit.Person())
		if errors.Is(err, memory.ErrNotFound) {
			return c.done(nil, path, "memory-none")
		}
		return c.done(err, path, "memory-gone")
	case "erase-all":
		err := memories.EraseAll(c.Context(), c.account.ID, c.project.ID, audit.Person())
		return c.done(err, path, "memory-gone")
	}
	return c.done(nil, path, "unchanged")
}

func (w *Web) changeMemoryDays(c *call, path string) error {
	entered := c.PostFormValue("memory-days")
	days, err := strconv.Atoi(entered)
	if err == nil && days >= 1 && days <= memory.MaxDays {
		err = w.Dashboard.Memory.SetDays(c.Context(), c.account.ID, c.project.ID, days, audit.Person())
		return c.done(err, path, "memory-days")
	}
	config, err := w.Dashboard.Assistant.Get(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	page := assistantPage{Memory: memoryForm{Days: entered}}
	page.add("memory-days", fmt.Sprintf("Enter a number from 1 to %d.", memory.MaxDays))
	return w.showAssistant(c, config, valuesOf(config), page)
}

func (w *Web) eraseMemoriesPage(c *call) error {
	path := projectPath(c.project.ID) + "/assistant"
	return w.confirm(c, confirmation{
		Nav: "projects", Title: "Erase what is remembered about all users?",
		Text: []string{"The assistant of " + c.project.DisplayName + " then knows nobody. This cannot be undone. " +
			"Conversations that are in progress are not remembered."},
		Action: path + "/memory", Hidden: map[string]string{"act": "erase-all"}, Label: "Erase all", Back: path,
		Instead: "Keep it",
	})
}
