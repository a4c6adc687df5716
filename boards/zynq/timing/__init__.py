"""Static timing of a routed Zynq design, with the delays of Project X-Ray's database."""
