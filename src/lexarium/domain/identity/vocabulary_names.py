"""Names of well-known vocabularies, by the prefixes of their CURIEs."""

from lexarium.domain.identity.prefixes import PrefixMap

_NAMES = {
    "BFO": "Basic Formal Ontology",
    "CHEBI": "Chemical Entities of Biological Interest",
    "CL": "Cell Ontology",
    "DOI": "Digital Object Identifier",
    "DOID": "Human Disease Ontology",
    "EFO": "Experimental Factor Ontology",
    "GARD": "Genetic and Rare Diseases Information Center",
    "GO": "Gene Ontology",
    "HP": "Human Phenotype Ontology",
    "ICD9": "International Classification of Diseases, 9th revision",
    "ICD9CM": "ICD, 9th revision, Clinical Modification",
    "ICD10": "International Classification of Diseases, 10th revision",
    "ICD10CM": "ICD, 10th revision, Clinical Modification",
    "ICD11": "International Classification of Diseases, 11th revision",
    "ICDO": "International Classification of Diseases for Oncology",
    "KEGG": "Kyoto Encyclopedia of Genes and Genomes",
    "MEDDRA": "Medical Dictionary for Regulatory Activities",
    "MESH": "Medical Subject Headings",
    "MONDO": "Mondo Disease Ontology",
    "NBO": "Neuro Behavior Ontology",
    "NCBITaxon": "NCBI Taxonomy",
    "NCIM": "NCI Metathesaurus",
    "NCIT": "NCI Thesaurus",
    "OMIM": "Online Mendelian Inheritance in Man",
    "OMIMPS": "OMIM Phenotypic Series",
    "Orphanet": "Orphanet Rare Disease Ontology",
    "PMID": "PubMed",
    "SNOMEDCT": "SNOMED Clinical Terms",
    "SO": "Sequence Ontology",
    "UBERON": "Uber-anatomy Ontology",
    "UMLS": "Unified Medical Language System",
    "agrovoc": "AGROVOC",
    "dbpedia": "DBpedia",
    "gnd": "Integrated Authority File of the German National Library",
    "lcsh": "Library of Congress Subject Headings",
    "wikidata": "Wikidata",
}
_BY_FOLDED_PREFIX = {prefix.casefold(): name for prefix, name in _NAMES.items()}


def name_vocabulary(identifier: str, prefixes: PrefixMap) -> str:
    """Return the name of the vocabulary that a CURIE or IRI belongs to; an empty text if it is not known."""
    iri = prefixes.expand(identifier) or identifier
    curie = prefixes.contract(iri) or identifier
    return _BY_FOLDED_PREFIX.get(curie.partition(":")[0].casefold(), "")
