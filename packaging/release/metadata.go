package main

// What every package says of the project.
const (
	homepage   = "https://github.com/service-dev/service"
	vendor     = "The service's developers"
	maintainer = vendor + " <maintainers@service-dev.invalid>"
)
