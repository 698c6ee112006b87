module kcert/bench/goloop

go 1.26
