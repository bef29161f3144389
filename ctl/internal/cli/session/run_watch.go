package session

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/service-dev/service/ctl/internal/watch"
)

// watchRuns repeats all runs whenever a scenario, or another file in its directory or in the working directory,
// changes. Ctrl-C stops it together with the apps that it started.
func (p *program) watchRuns(ctx context.Context, o runOptions, args, appCommand []string) error {
	roots, err := watchedFolders(args, o)
	if err != nil {
		return err
	}
	w, err := watch.New(roots, func(path string) bool { return o.writes(path) || p.prints(path) })
	if err != nil {
		return err
	}
	defer w.Close()
	var written []string
	for {
		run := watch.Span{From: time.Now()}
		err := p.runBatch(ctx, o, args, appCommand)
		run.To = time.Now()
		if ctx.Err() != nil {
			return context.Canceled
		}
		p.Report(err)
		p.Watching(written)
		var changed []string
		if changed, written, err = w.Next(ctx, run); err != nil {
			return err
		}
		for i, path := range written {
			written[i] = nameOf(path)
		}
		p.RunsAgain(nameOf(changed[0]), len(changed)-1)
	}
}

// writes reports whether a path is a report that the runs write.
func (o *runOptions) writes(path string) bool {
	for _, file := range []string{o.junit, o.html} {
		if full, err := absolute(file); file != "" && err == nil && full == path {
			return true
		}
	}
	return strings.HasPrefix(filepath.Base(path), reportTemp)
}

// prints reports whether standard output or standard error is redirected to a path.
func (p *program) prints(path string) bool {
	info, err := os.Stat(path)
	goesTo := func(stream io.Writer) bool {
		file, ok := stream.(*os.File)
		if !ok || err != nil {
			return false
		}
		own, err := file.Stat()
		return err == nil && os.SameFile(own, info)
	}
	return goesTo(p.Out) || goesTo(p.Err)
}

// watchedFolders returns the working directory and the directories of the scenarios and their apps, without duplicates
// and without directories below another one.
func watchedFolders(args []string, o runOptions) ([]string, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	roots := []string{here}
	add := func(dir string) {
		for _, root := range roots {
			if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
				return
			}
		}
		roots = append(roots, dir)
	}
	for _, arg := range args {
		path, err := absolute(arg)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			path = filepath.Dir(path)
		}
		add(path)
	}
	jobs, _, err := findJobs(args, o.models)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if app := j.scenario.App; app != nil && app.Dir != "" {
			dir := app.Dir
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(filepath.Dir(j.file), dir)
			}
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				add(dir)
			}
		}
	}
	return roots, nil
}
