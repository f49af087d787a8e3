// Package chart tests that charts/kruisekit has the objects of config/, and that its values mean what docs/install.md says.
package chart
