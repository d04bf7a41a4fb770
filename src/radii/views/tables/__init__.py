"""Tables: each a record made once, written as text, LaTeX or Markdown."""
