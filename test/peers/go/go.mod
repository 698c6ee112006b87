module kcert/test/peers/go

go 1.26
