// Command peer answers what Go's crypto/x509 says, for kcert's tests and benchmarks to compare with.
//
//	peer verify            one case a line on standard input, one answer a line on standard output
//	peer parse             the same for single certificates
//	peer parse PATH...     every certificate in the files and folders, one a line
//	peer sign              one request a line, one certificate a line, as kube-controller-manager signs
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "verify":
		return answerEach(os.Stdin, os.Stdout, verify)
	case len(args) == 1 && args[0] == "parse":
		return answerEach(os.Stdin, os.Stdout, parse)
	case len(args) == 1 && args[0] == "sign":
		return answerEach(os.Stdin, os.Stdout, sign)
	case len(args) > 1 && args[0] == "parse":
		return parsePaths(args[1:], os.Stdout)
	}
	return fmt.Errorf("usage: peer verify | peer sign | peer parse [PATH...]")
}

// answerEach flushes whenever the input pauses, so that a test may also ask one case at a time.
func answerEach[Question, Answer any](in io.Reader, out io.Writer, answer func(Question) Answer) error {
	reader := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriterSize(out, 1<<20)
	defer writer.Flush()
	questions, answers := json.NewDecoder(reader), json.NewEncoder(writer)
	for {
		var question Question
		if err := questions.Decode(&question); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(answer(question)); err != nil {
			return err
		}
		if reader.Buffered() == 0 {
			if err := writer.Flush(); err != nil {
				return err
			}
		}
	}
}
