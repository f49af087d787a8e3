// Package diagnose has the command diagnose, which packs what is needed to find a fault into one file without secrets.
//
// Redact removes what may be a secret from an object. No Secret is read.
package diagnose
