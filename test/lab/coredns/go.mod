// Each release has a file of its own here, given by -modfile.
module kcert/lab

go 1.26.0
