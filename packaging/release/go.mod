module github.com/service-dev/service/packaging/release

go 1.26
