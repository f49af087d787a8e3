// Package packages lists the packages of the system that tests and real nodes need, by their Debian names, and installs
// those that are missing as root on Debian or Ubuntu. It imports the standard library alone, so that a fresh machine
// compiles it in seconds: see hack/packages.
//
// When not to use it: for Go modules and the programs that package binaries builds.
package packages
