package command

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"

	"github.com/spf13/pflag"
)

// profile is what --profile asks for.
type profile struct {
	name, output string
	cpu          *os.File
}

// addFlags adds the flags of profiles, as kubectl has them.
func (p *profile) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.name, "profile", "none",
		"Name of profile to capture. One of (none|cpu|heap|goroutine|threadcreate|block|mutex)")
	flags.StringVar(&p.output, "profile-output", "profile.pprof", "Name of the file to write the profile to")
}

// start begins the profile.
func (p *profile) start() error {
	switch p.name {
	case "none":
		return nil
	case "cpu":
		file, err := os.Create(p.output)
		if err != nil {
			return err
		}
		p.cpu = file
		return pprof.StartCPUProfile(file)
	case "block":
		runtime.SetBlockProfileRate(1)
	case "mutex":
		runtime.SetMutexProfileFraction(1)
	}
	if pprof.Lookup(p.name) == nil {
		return fmt.Errorf("unknown profile '%s'", p.name)
	}
	return nil
}

// write writes the profile.
func (p *profile) write() error {
	if p.cpu != nil {
		pprof.StopCPUProfile()
		return p.cpu.Close()
	}
	kept := pprof.Lookup(p.name)
	if kept == nil {
		return nil
	}
	if p.name == "heap" {
		runtime.GC()
	}
	file, err := os.Create(p.output)
	if err != nil {
		return err
	}
	return errors.Join(kept.WriteTo(file, 0), file.Close())
}
