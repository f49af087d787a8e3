package certificates

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	day  = 24 * time.Hour
	year = 365 * day

	// maxRenewBefore keeps a certificate, which lives twice as long, below the life of its CA.
	maxRenewBefore = 2 * year
)

// Options of a Keeper.
type Options struct {
	// Port is where the webhook server of this process listens, which Ready asks. Required.
	Port int
	// Targets are the objects that need the CA. One that does not exist gets it when it is created.
	Targets []Target
	// Secret holds CA and certificate, in the namespace of the service. Defaults to the service's name and "-certs".
	Secret string
	// External means that another program fills the Secret (ca.crt, tls.crt, tls.key) and the targets, such as
	// cert-manager. Then nothing is ever written.
	External bool
	// RenewBefore is how long before its end a certificate is replaced; it is made for twice that time. Defaults to 180
	// days, may be 2 years at most.
	RenewBefore time.Duration
	// Overlap is how long a replaced CA stays trusted. Defaults to an hour.
	Overlap time.Duration
	// Settle is how long API servers get to learn of a new CA before a certificate of it is served. Defaults to 5 seconds.
	Settle time.Duration
	// StartTimeout ends Start with an error when the first certificate is not in use by then. Zero waits for ever, and so
	// does External, because the program that fills the Secret may start later.
	StartTimeout time.Duration
	// Clock defaults to the real one.
	Clock clock.Clock
}

func (o Options) withDefaults(service types.NamespacedName) Options {
	if o.Secret == "" {
		o.Secret = service.Name + "-certs"
	}
	if o.RenewBefore == 0 {
		o.RenewBefore = 180 * day
	}
	if o.Overlap == 0 {
		o.Overlap = time.Hour
	}
	if o.Settle == 0 {
		o.Settle = 5 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

func (o Options) validate(service types.NamespacedName) error {
	var all []error
	if service.Name == "" || service.Namespace == "" {
		all = append(all, fmt.Errorf("the service %q needs a name and a namespace", service))
	}
	if o.Port < 1 || o.Port > 65535 {
		all = append(all, fmt.Errorf("port %d: want 1 to 65535", o.Port))
	}
	if o.RenewBefore < 0 || o.RenewBefore > maxRenewBefore {
		all = append(all, fmt.Errorf("renew before %s: want at most %s", o.RenewBefore, maxRenewBefore))
	}
	if o.Overlap < 0 || o.Settle < 0 || o.StartTimeout < 0 {
		all = append(all, errors.New("overlap, settle and start timeout must not be negative"))
	}
	for _, t := range o.Targets {
		if t.kind == "" || t.name == "" {
			all = append(all, fmt.Errorf("target %q: make it with Mutating, Validating or Conversion, and a name", t))
		}
	}
	return errors.Join(all...)
}

// Target is an object that names the service and needs its CA.
type Target struct {
	kind kind
	name string
}

// Mutating is a MutatingWebhookConfiguration.
func Mutating(name string) Target { return Target{kind: mutating, name: name} }

// Validating is a ValidatingWebhookConfiguration.
func Validating(name string) Target { return Target{kind: validating, name: name} }

// Conversion is a CustomResourceDefinition that is converted by webhook.
func Conversion(crd string) Target { return Target{kind: conversion, name: crd} }

// String is kind and name.
func (t Target) String() string { return string(t.kind) + "/" + t.name }

// kind of an object that is followed.
type kind string

const (
	mutating   kind = "MutatingWebhookConfiguration"
	validating kind = "ValidatingWebhookConfiguration"
	conversion kind = "CustomResourceDefinition"
	secret     kind = "Secret"
)
