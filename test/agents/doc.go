// Package agents contains the tests with real coding agents. They have the build tag agents, because the agents are
// large downloads: make agents-npm installs them, and make agents-test runs the tests.
package agents
