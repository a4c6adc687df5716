"""How each kind of TFLite operator becomes operations of a graph."""
