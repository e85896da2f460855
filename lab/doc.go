// Package lab runs experiments with limiters and draws what they did. [Outage] takes Redis away from a fleet and counts
// what it admits.
//
// Results are data, with a JSON form, and can be written as text, CSV and SVG.
package lab
