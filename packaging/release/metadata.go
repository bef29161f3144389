package main

// What every package says of the project.
const homepage = "https://github.com/service-dev/service"
