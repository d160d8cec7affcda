"""The commands of ``crashmq``, a module each, imported when used."""
