// Package agents contains the tests with real coding agents. They need the build tag agents because the agents are
// large downloads: make agents-npm installs them, make agents-test runs the tests.
package agents
